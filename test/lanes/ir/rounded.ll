; Floats rounded to 16 bits, two of them the halves of a word.
target triple = "nvptx64-nvidia-cuda"

; Both known at the first: the upper halves, which are also taken from the floats; and what they leave, the lower ones.
define void @parts(<2 x float> %floats, ptr addrspace(1) %to) {
  %a = extractelement <2 x float> %floats, i64 0
  %ha = fptrunc float %a to bfloat
  %ea = fpext bfloat %ha to float
  %ra = fsub float %a, %ea
  %la = fptrunc float %ra to bfloat
  %b = extractelement <2 x float> %floats, i64 1
  %hb = fptrunc float %b to bfloat
  %eb = fpext bfloat %hb to float
  %rb = fsub float %b, %eb
  %lb = fptrunc float %rb to bfloat
  %iha = bitcast bfloat %ha to i16
  %ihb = bitcast bfloat %hb to i16
  %ila = bitcast bfloat %la to i16
  %ilb = bitcast bfloat %lb to i16
  %zha = zext i16 %iha to i32
  %zhb = zext i16 %ihb to i32
  %zla = zext i16 %ila to i32
  %zlb = zext i16 %ilb to i32
  %sh = shl nuw i32 %zhb, 16
  %sl = shl nuw i32 %zlb, 16
  %high = or disjoint i32 %sh, %zha
  %low = or disjoint i32 %zla, %sl
  store i32 %high, ptr addrspace(1) %to
  %second = getelementptr i32, ptr addrspace(1) %to, i64 1
  store i32 %low, ptr addrspace(1) %second
  ret void
}

define void @halves(float %a, float %b, ptr addrspace(1) %to) {
  %ha = fptrunc float %a to half
  %hb = fptrunc float %b to half
  %ia = bitcast half %ha to i16
  %ib = bitcast half %hb to i16
  %za = zext i16 %ia to i32
  %zb = zext i16 %ib to i32
  %s = shl nuw i32 %zb, 16
  %word = or disjoint i32 %s, %za
  store i32 %word, ptr addrspace(1) %to
  ret void
}

; The first is stored before the second is known.
define void @apart(float %a, ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %ha = fptrunc float %a to bfloat
  %place = getelementptr bfloat, ptr addrspace(1) %to, i64 2
  store volatile bfloat %ha, ptr addrspace(1) %place
  %b = load volatile float, ptr addrspace(1) %from
  %hb = fptrunc float %b to bfloat
  %ia = bitcast bfloat %ha to i16
  %ib = bitcast bfloat %hb to i16
  %za = zext i16 %ia to i32
  %zb = zext i16 %ib to i32
  %s = shl nuw i32 %zb, 16
  %word = or disjoint i32 %s, %za
  store i32 %word, ptr addrspace(1) %to
  ret void
}

; From doubles, of which there is no such instruction.
define void @doubles(double %a, double %b, ptr addrspace(1) %to) {
  %ha = fptrunc double %a to half
  %hb = fptrunc double %b to half
  %ia = bitcast half %ha to i16
  %ib = bitcast half %hb to i16
  %za = zext i16 %ia to i32
  %zb = zext i16 %ib to i32
  %s = shl nuw i32 %zb, 16
  %word = or disjoint i32 %s, %za
  store i32 %word, ptr addrspace(1) %to
  ret void
}

define void @vector(<2 x float> %floats, ptr addrspace(1) %to) {
  %rounded = fptrunc <2 x float> %floats to <2 x half>
  store <2 x half> %rounded, ptr addrspace(1) %to
  ret void
}
