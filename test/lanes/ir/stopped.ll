target triple = "nvptx64-nvidia-cuda"

; Entries of three kernels: a loop that ends when memory says so, one that counts, and one in a function of its own.
%dispatch = type { i64, ptr }

define void @sm_entry_1(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  br label %loop
loop:
  %value = load volatile i16, ptr %out
  %goes = icmp eq i16 %value, 0
  br i1 %goes, label %loop, label %end
end:
  ret void
}

define void @sm_entry_2(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  %count = load i32, ptr %out
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %out
  %next = add nuw i32 %i, 1
  %goes = icmp ult i32 %next, %count
  br i1 %goes, label %loop, label %end
end:
  ret void
}

define internal void @wait(ptr %out) noinline {
entry:
  br label %loop
loop:
  %value = load volatile i16, ptr %out
  %goes = icmp eq i16 %value, 0
  br i1 %goes, label %loop, label %end
end:
  ret void
}

define void @sm_entry_3(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  call void @wait(ptr %out)
  ret void
}

; A loop that counts to a number that memory changes.
define void @sm_entry_4(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %count = load volatile i16, ptr %out
  %far = zext i16 %count to i32
  %goes = icmp ne i32 %next, %far
  br i1 %goes, label %loop, label %end
end:
  ret void
}

; Loops that go on while they count or memory says so, and while both hold.
define void @sm_entry_5(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  %count = load i32, ptr %out
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %counts = icmp ult i32 %next, %count
  %value = load volatile i16, ptr %out
  %waits = icmp eq i16 %value, 0
  %goes = or i1 %counts, %waits
  br i1 %goes, label %loop, label %end
end:
  ret void
}

define void @sm_entry_6(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  %count = load i32, ptr %out
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %counts = icmp ult i32 %next, %count
  %value = load volatile i16, ptr %out
  %waits = icmp eq i16 %value, 0
  %goes = and i1 %counts, %waits
  br i1 %goes, label %loop, label %end
end:
  ret void
}

; Loops that end when both have ended, and when either has.
define void @sm_entry_7(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  %count = load i32, ptr %out
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %counted = icmp uge i32 %next, %count
  %value = load volatile i16, ptr %out
  %woken = icmp ne i16 %value, 0
  %ends = and i1 %counted, %woken
  br i1 %ends, label %end, label %loop
end:
  ret void
}

define void @sm_entry_8(ptr byval(%dispatch) %dispatch) {
entry:
  %place = getelementptr i8, ptr %dispatch, i64 8
  %out = load ptr, ptr %place
  %count = load i32, ptr %out
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %counted = icmp uge i32 %next, %count
  %value = load volatile i16, ptr %out
  %woken = icmp ne i16 %value, 0
  %ends = or i1 %counted, %woken
  br i1 %ends, label %end, label %loop
end:
  ret void
}

!nvvm.annotations = !{!0, !1, !2, !3, !4, !5, !6, !7}
!0 = !{ptr @sm_entry_1, !"kernel", i32 1}
!1 = !{ptr @sm_entry_2, !"kernel", i32 1}
!2 = !{ptr @sm_entry_3, !"kernel", i32 1}
!3 = !{ptr @sm_entry_4, !"kernel", i32 1}
!4 = !{ptr @sm_entry_5, !"kernel", i32 1}
!5 = !{ptr @sm_entry_6, !"kernel", i32 1}
!6 = !{ptr @sm_entry_7, !"kernel", i32 1}
!7 = !{ptr @sm_entry_8, !"kernel", i32 1}
