#include <metal_stdlib>
using namespace metal;
float2 __WMMA_8_8_8_float_float(float2 a, float2 b, float2 c){
  simdgroup_float8x8 mat_a, mat_b; simdgroup_float8x8 mat_c;
  mat_a.thread_elements()[0] = a[0]; mat_b.thread_elements()[0] = b[0]; mat_c.thread_elements()[0] = c[0];
  mat_a.thread_elements()[1] = a[1]; mat_b.thread_elements()[1] = b[1]; mat_c.thread_elements()[1] = c[1];
  simdgroup_multiply_accumulate(mat_c, mat_a, mat_b, mat_c); return float2(mat_c.thread_elements()[0], mat_c.thread_elements()[1]);
}
float2 __WMMA_8_8_8_half_float(half2 a, half2 b, float2 c){
  simdgroup_half8x8 mat_a, mat_b; simdgroup_float8x8 mat_c;
  mat_a.thread_elements()[0] = a[0]; mat_b.thread_elements()[0] = b[0]; mat_c.thread_elements()[0] = c[0];
  mat_a.thread_elements()[1] = a[1]; mat_b.thread_elements()[1] = b[1]; mat_c.thread_elements()[1] = c[1];
  simdgroup_multiply_accumulate(mat_c, mat_a, mat_b, mat_c); return float2(mat_c.thread_elements()[0], mat_c.thread_elements()[1]);
}
kernel void r_2_2_32_2_2_4_8(device float* data0_512, const device half* data1_1024, const device half* data2_1024, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  float acc0[8];
  int gidx0 = gid.x; /* 2 */
  int gidx1 = gid.y; /* 2 */
  int lidx0 = lid.x; /* 32 */
  int alu0 = (lidx0>>4);
  int alu1 = ((lidx0>>1)&3);
  int alu2 = ((lidx0>>3)&1);
  int row = ((alu0<<2)+alu1);
  int col = ((alu2<<2)+((lidx0&1)<<1));
  *(acc0+0) = 0.0f;
  *(acc0+1) = 0.0f;
  *(acc0+2) = 0.0f;
  *(acc0+3) = 0.0f;
  *(acc0+4) = 0.0f;
  *(acc0+5) = 0.0f;
  *(acc0+6) = 0.0f;
  *(acc0+7) = 0.0f;
  for (int Ridx0 = 0; Ridx0 < 4; Ridx0++) {
    int alu9 = ((gidx1<<9)+(row<<5)+(Ridx0<<3)+col);
    half2 val0 = (*((device half2*)((data1_1024+alu9))));
    half2 val1 = (*((device half2*)((data1_1024+(alu9+256)))));
    int alu10 = ((gidx0<<4)+(Ridx0<<8)+(row<<5)+col);
    half2 val2 = (*((device half2*)((data2_1024+alu10))));
    half2 val3 = (*((device half2*)((data2_1024+(alu10+8)))));
    float2 wmma0 = __WMMA_8_8_8_half_float(val0, val2, float2((*(acc0+0)),(*(acc0+1))));
    float2 wmma1 = __WMMA_8_8_8_half_float(val0, val3, float2((*(acc0+2)),(*(acc0+3))));
    float2 wmma2 = __WMMA_8_8_8_half_float(val1, val2, float2((*(acc0+4)),(*(acc0+5))));
    float2 wmma3 = __WMMA_8_8_8_half_float(val1, val3, float2((*(acc0+6)),(*(acc0+7))));
    *(acc0+0) = wmma0.x;
    *(acc0+1) = wmma0.y;
    *(acc0+2) = wmma1.x;
    *(acc0+3) = wmma1.y;
    *(acc0+4) = wmma2.x;
    *(acc0+5) = wmma2.y;
    *(acc0+6) = wmma3.x;
    *(acc0+7) = wmma3.y;
  }
  int alu20 = ((gidx1<<9)+(row<<5)+(gidx0<<4)+col);
  *((device float2*)((data0_512+alu20))) = float2((*(acc0+0)),(*(acc0+1)));
  *((device float2*)((data0_512+(alu20+8)))) = float2((*(acc0+2)),(*(acc0+3)));
  *((device float2*)((data0_512+(alu20+256)))) = float2((*(acc0+4)),(*(acc0+5)));
  *((device float2*)((data0_512+(alu20+264)))) = float2((*(acc0+6)),(*(acc0+7)));
}
kernel void r_4_16_4(device float* data0, const device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  threadgroup __attribute__((aligned(16))) float temp0[16];
  float acc0[1];
  float acc1[1];
  int gidx0 = gid.x; /* 4 */
  int lidx0 = lid.x; /* 16 */
  int alu0 = ((gidx0<<6)+(lidx0<<2));
  acc0[0] = 0.0f;
  acc1[0] = -INFINITY;
  float4 val0 = (*((device float4*)((data1+alu0))));
  acc0[0] = (acc0[0]+val0.x+val0.y+val0.z+val0.w);
  temp0[lidx0] = acc0[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (((bool)((lidx0!=1))?0:1)&&(lidx0<1)) { }
  float acc2 = 0.0f;
  for (int ridx1000 = 0; ridx1000 < 16; ridx1000++) {
    float val1 = temp0[ridx1000];
    acc2 = (acc2+val1);
  }
  bool alu3 = (lidx0==0);
  if (alu3) {
    data0[gidx0] = (acc2*0.015625f);
  }
}
kernel void E_4_4_cast(device half* data0, device unsigned char* data1, device int* data2, const device float* data3, const device signed char* data4, const constant int& start_pos, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int gidx0 = gid.x;
  int lidx0 = lid.x;
  int alu0 = ((gidx0<<2)+lidx0);
  float val0 = *(data3+alu0);
  signed char val1 = (*(data4+alu0));
  *(data0+alu0) = ((half)(val0));
  *(data1+alu0) = ((unsigned char)(((bool)(val1))));
  *(data2+alu0) = (((val0<0.0f)!=1)?((int)(precise::sin((val0*0.5f)))+start_pos):as_type<int>(((float)(val1))));
  data0[alu0] = data0[alu0] + (half)((unsigned short)(3u)) + half(max(val0, (float)(0.0f)));
}
kernel void E_unrolled(device float* data0_16, const device float* data1_16, const device bool* data2_16, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  int lidx0 = lid.x; /* 4 */
  int alu0 = (lidx0<<2);
  bool val0 = (*(data2_16+alu0));
  bool val1 = (*(data2_16+(alu0+1)));
  bool val2 = (*(data2_16+(alu0+2)));
  bool val3 = (*(data2_16+(alu0+3)));
  float4 val4 = (*((device float4*)((data1_16+alu0))));
  float alu1 = (val4.x*((float)(1.4426950408889634f)));
  *((device float4*)((data0_16+alu0))) = float4((val0?(1/(1.0f+exp2(-alu1))):0.0f),(val1?exp2(alu1):0.0f),(val2?sqrt(val4.z):NAN),((!val3)?log2(val4.w):(float)(INFINITY)));
}
