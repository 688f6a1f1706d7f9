; Four lanes own a row and choose a place together, in one of two ways, to load words side by side; then each lane
; chooses for itself.
declare void @sm_kernel(i32, i1)
declare i32 @sm_lane() memory(none)
define void @kernel(ptr %group, i32 %simdgroup) {
entry:
  %lanes = load i32, ptr %group
  %whole = icmp uge i32 %lanes, 32
  call void @sm_kernel(i32 %lanes, i1 %whole)
  %lane = call i32 @sm_lane()
  %in = getelementptr i8, ptr %group, i64 64
  %out = getelementptr i8, ptr %group, i64 1024
  %row = lshr i32 %lane, 2
  %quad = and i32 %lane, 3
  %row64 = zext i32 %row to i64
  %quad64 = zext i32 %quad to i64
  %storedfrom = getelementptr i32, ptr %in, i64 %row64
  %second = and i32 %row, 1
  %issecond = icmp eq i32 %second, 1
  br i1 %issecond, label %stored, label %counted
stored:
  %storedplace = load i32, ptr %storedfrom, align 4
  %storedin = and i32 %storedplace, 3
  br label %chosen
counted:
  %countedin = and i32 %row, 3
  br label %chosen
chosen:
  %place = phi i32 [ %storedin, %stored ], [ %countedin, %counted ]
  %place64 = zext i32 %place to i64
  %base = getelementptr [16 x i8], ptr %in, i64 %place64
  %from = getelementptr i32, ptr %base, i64 %quad64
  %value = load i32, ptr %from, align 4
  %odd = and i32 %lane, 1
  %isodd = icmp eq i32 %odd, 1
  br i1 %isodd, label %own, label %shared
own:
  %ownat = getelementptr i32, ptr %storedfrom, i64 8
  %ownplace = load i32, ptr %ownat, align 4
  %ownin = and i32 %ownplace, 3
  br label %end
shared:
  %sharedin = xor i32 %place, 1
  br label %end
end:
  %other = phi i32 [ %ownin, %own ], [ %sharedin, %shared ]
  %other64 = zext i32 %other to i64
  %otherbase = getelementptr [16 x i8], ptr %in, i64 %other64
  %otherfrom = getelementptr i32, ptr %otherbase, i64 %quad64
  %more = load i32, ptr %otherfrom, align 4
  %thousands = mul i32 %more, 1000
  %sum = add i32 %value, %thousands
  %lane64 = zext i32 %lane to i64
  %to = getelementptr i32, ptr %out, i64 %lane64
  store i32 %sum, ptr %to, align 4
  ret void
}
