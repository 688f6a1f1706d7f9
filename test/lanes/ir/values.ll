target triple = "nvptx64-nvidia-cuda"

; What entries do with an argument, whose address is the fourth word of their dispatch.
%dispatch = type { i64, i64, ptr, i64 }

declare i64 @sm_value_argument(i64, i32, i32) memory(none)
declare void @llvm.nvvm.barrier0()

; One place.
define void @sm_entry_1(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 1, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %place = getelementptr i8, ptr addrspace(1) %argument, i64 12
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; A place, or another argument's, by the way to it.
define void @sm_entry_2(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 2, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %a = getelementptr i8, ptr addrspace(1) %argument, i64 4
  %others_address = call i64 @sm_value_argument(i64 %given, i32 1, i32 20)
  %others = inttoptr i64 %others_address to ptr addrspace(1)
  %b = getelementptr i8, ptr addrspace(1) %others, i64 8
  %choice = load volatile i32, ptr %out
  %isA = icmp eq i32 %choice, 0
  br i1 %isA, label %first, label %second
first:
  call void @llvm.nvvm.barrier0()
  br label %end
second:
  store volatile i32 2, ptr %out
  br label %end
end:
  %place = phi ptr addrspace(1) [ %a, %first ], [ %b, %second ]
  %next = getelementptr i8, ptr addrspace(1) %place, i64 4
  %value = load i32, ptr addrspace(1) %next
  store volatile i32 %value, ptr %out
  ret void
}

; A place that is computed.
define void @sm_entry_3(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 3, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %index = load volatile i32, ptr %out
  %far = sext i32 %index to i64
  %place = getelementptr i32, ptr addrspace(1) %argument, i64 %far
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

define internal i32 @read(ptr addrspace(1) %place) noinline {
  %value = load volatile i32, ptr addrspace(1) %place
  ret i32 %value
}

; A function has the address.
define void @sm_entry_4(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 4, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %value = call i32 @read(ptr addrspace(1) %argument)
  store i32 %value, ptr %out
  ret void
}

; The place moves on in a loop.
define void @sm_entry_5(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 5, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  br label %loop
loop:
  %place = phi ptr addrspace(1) [ %argument, %entry ], [ %next, %loop ]
  %value = load i32, ptr addrspace(1) %place
  store volatile i32 %value, ptr %out
  %next = getelementptr i8, ptr addrspace(1) %place, i64 4
  %count = load volatile i32, ptr %out
  %goes = icmp ult i32 %count, 5
  br i1 %goes, label %loop, label %end
end:
  ret void
}

; A place, and one that may be another's.
define void @sm_entry_6(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 6, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %choice = load i32, ptr addrspace(1) %argument
  %isOwn = icmp eq i32 %choice, 0
  %other = addrspacecast ptr %out to ptr addrspace(1)
  %own = getelementptr i8, ptr addrspace(1) %argument, i64 4
  %place = select i1 %isOwn, ptr addrspace(1) %own, ptr addrspace(1) %other
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; A place that may be another's.
define void @sm_entry_7(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 7, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %choice = load volatile i32, ptr %out
  %isOwn = icmp eq i32 %choice, 0
  %other = addrspacecast ptr %out to ptr addrspace(1)
  %place = select i1 %isOwn, ptr addrspace(1) %argument, ptr addrspace(1) %other
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; More bytes than there is room for.
define void @sm_entry_8(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 8, i32 4000)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %value = load i32, ptr addrspace(1) %argument
  store i32 %value, ptr %out
  ret void
}

define internal i32 @sm_active_lanes() noinline convergent nounwind {
  %mask = call i32 asm "activemask.b32 $0;", "=r"() convergent nounwind
  ret i32 %mask
}

; Lanes go on together behind what all read.
define void @sm_entry_9(ptr byval(%dispatch) align 8 %dispatch) convergent {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 9, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %value = load i32, ptr addrspace(1) %argument
  %goes = icmp eq i32 %value, 0
  br i1 %goes, label %together, label %end
together:
  %lanes = call i32 @sm_active_lanes() convergent
  store i32 %lanes, ptr %out
  br label %end
end:
  ret void
}

; A place outside of the argument.
define void @sm_entry_10(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 10, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %place = getelementptr i8, ptr addrspace(1) %argument, i64 20
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; One argument or another, by a choice of their addresses.
define void @sm_entry_11(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 11, i32 20)
  %others_address = call i64 @sm_value_argument(i64 %given, i32 1, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %others = inttoptr i64 %others_address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %choice = load volatile i32, ptr %out
  %isOwn = icmp eq i32 %choice, 0
  %place = select i1 %isOwn, ptr addrspace(1) %argument, ptr addrspace(1) %others
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; A place that is computed, on one of two ways.
define void @sm_entry_12(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 12, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %index = load volatile i32, ptr %out
  %far = sext i32 %index to i64
  %place = getelementptr i32, ptr addrspace(1) %argument, i64 %far
  %isPlace = icmp ult i32 %index, 5
  %others_address = call i64 @sm_value_argument(i64 %given, i32 1, i32 20)
  %others = inttoptr i64 %others_address to ptr addrspace(1)
  %chosen = select i1 %isPlace, ptr addrspace(1) %place, ptr addrspace(1) %others
  %value = load i32, ptr addrspace(1) %chosen
  store i32 %value, ptr %out
  ret void
}

; A place that is computed, of an argument that is one value.
define void @sm_entry_13(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 13, i32 4)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %index = load volatile i32, ptr %out
  %far = sext i32 %index to i64
  %place = getelementptr i32, ptr addrspace(1) %argument, i64 %far
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

; A place in front of the argument.
define void @sm_entry_14(ptr byval(%dispatch) align 8 %dispatch) {
entry:
  %word = getelementptr i8, ptr %dispatch, i64 24
  %given = load i64, ptr %word
  %address = call i64 @sm_value_argument(i64 %given, i32 14, i32 20)
  %argument = inttoptr i64 %address to ptr addrspace(1)
  %outs = getelementptr i8, ptr %dispatch, i64 16
  %out = load ptr, ptr %outs
  %place = getelementptr i8, ptr addrspace(1) %argument, i64 -4
  %value = load i32, ptr addrspace(1) %place
  store i32 %value, ptr %out
  ret void
}

!nvvm.annotations = !{!0, !1, !2, !3, !4, !5, !6, !7, !8, !9, !10, !11, !12, !13}
!0 = !{ptr @sm_entry_1, !"kernel", i32 1}
!1 = !{ptr @sm_entry_2, !"kernel", i32 1}
!2 = !{ptr @sm_entry_3, !"kernel", i32 1}
!3 = !{ptr @sm_entry_4, !"kernel", i32 1}
!4 = !{ptr @sm_entry_5, !"kernel", i32 1}
!5 = !{ptr @sm_entry_6, !"kernel", i32 1}
!6 = !{ptr @sm_entry_7, !"kernel", i32 1}
!7 = !{ptr @sm_entry_8, !"kernel", i32 1}
!8 = !{ptr @sm_entry_9, !"kernel", i32 1}
!9 = !{ptr @sm_entry_10, !"kernel", i32 1}
!10 = !{ptr @sm_entry_11, !"kernel", i32 1}
!11 = !{ptr @sm_entry_12, !"kernel", i32 1}
!12 = !{ptr @sm_entry_13, !"kernel", i32 1}
!13 = !{ptr @sm_entry_14, !"kernel", i32 1}
