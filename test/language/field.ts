/** Kernels as the field writes them beyond attention: sources of the suite field.test.ts. */

/** Histogram, prefix sums, a radix sort and a bitonic sort of a block. */
export const sorting = `#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

constexpr constant uint kRadixBits = 4;
constant constexpr uint kBuckets = 1u << kRadixBits;
constexpr constant ushort kThreads = 128;

struct SortParams {
  uint count;
  uint shift;
};

inline uint digit(uint key, uint shift) { return (key >> shift) & (kBuckets - 1); }

kernel void histogram(device atomic_uint *bins [[buffer(0)]],
                      const device uint *keys [[buffer(1)]],
                      constant SortParams &params [[buffer(2)]],
                      uint gid [[thread_position_in_grid]],
                      uint lid [[thread_position_in_threadgroup]],
                      uint stride [[threads_per_grid]]) {
  threadgroup atomic_uint local_bins[kBuckets];
  if (lid < kBuckets) {
    atomic_store_explicit(&local_bins[lid], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = gid; i < params.count; i += stride) {
    atomic_fetch_add_explicit(&local_bins[digit(keys[i], params.shift)], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lid < kBuckets) {
    const uint n = atomic_load_explicit(&local_bins[lid], memory_order_relaxed);
    if (n) atomic_fetch_add_explicit(bins + lid, n, memory_order_relaxed);
  }
}

// Exclusive sum over a threadgroup: within SIMD groups, then over them.
template <typename T, ushort Size>
T threadgroup_prefix_exclusive_sum(T value, threadgroup T (&partial)[Size / 32], ushort lane, ushort group) {
  const T prefix = simd_prefix_exclusive_sum(value);
  if (lane == 31) partial[group] = prefix + value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group == 0) {
    const T total = lane < Size / 32 ? partial[lane] : T(0);
    const T sums = simd_prefix_exclusive_sum(total);
    if (lane < Size / 32) partial[lane] = sums;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const T result = prefix + partial[group];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return result;
}

// A whole sort of kThreads keys and values, one bit a pass, stable.
kernel void sort_block(device uint2 *out [[buffer(0)]],
                       const device uint *keys [[buffer(1)]],
                       ushort lid [[thread_position_in_threadgroup]],
                       ushort lane [[thread_index_in_simdgroup]],
                       ushort group [[simdgroup_index_in_threadgroup]],
                       uint block [[threadgroup_position_in_grid]]) {
  threadgroup uint2 pairs[kThreads];
  threadgroup uint partial[kThreads / 32];
  threadgroup uint zeros;
  uint2 mine{keys[block * kThreads + lid], lid};
  for (ushort bit = 0; bit < 32; bit++) {
    const uint one = extract_bits(mine.x, bit, 1);
    const uint before = threadgroup_prefix_exclusive_sum<uint, kThreads>(1 - one, partial, lane, group);
    if (lid == kThreads - 1) zeros = before + 1 - one;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint at = one ? zeros + lid - before : before;
    pairs[at] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    mine = pairs[lid];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[block * kThreads + lid] = mine;
}

// Bitonic sort through a reference to a threadgroup array.
template <typename T, uint N>
void bitonic(threadgroup T (&data)[N], uint lid) {
  for (uint k = 2; k <= N; k <<= 1) {
    for (uint j = k >> 1; j > 0; j >>= 1) {
      const uint partner = lid ^ j;
      if (partner > lid) {
        const bool up = (lid & k) == 0;
        threadgroup T &a = data[lid];
        threadgroup T &b = data[partner];
        if ((a > b) == up) {
          T t = a;
          a = b;
          b = t;
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
}
kernel void bitonic_sort(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint lid [[thread_index_in_threadgroup]]) {
  threadgroup float data[256];
  data[lid] = in[lid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bitonic(data, lid);
  out[lid] = data[lid];
}
`;

/** Structs, unions and packed vectors in device memory, operators, vectors of bool. */
export const bodies = `#include <metal_stdlib>
using namespace metal;

enum class Shape : uint { Sphere, Box = 4, Plane };
using vec3 = packed_float3;

namespace world {
constant float kStep = 0.125f;
struct Limits {
  static constexpr constant int kMax = 3;
  static constexpr constant float kFloor[] = {0.0f, -1.5f, 2.0f};
};
}  // namespace world

struct Body {
  vec3 position;
  float mass;
  struct Spin {
    packed_half3 axis;
    half rate;
  } spin;
  union {
    uint bits;
    uchar4 bytes;
    float number;
  } tag;
  Shape shape;
};

struct Ray {
  float3 origin, direction;
  float3 at(float t) const { return origin + t * direction; }
};

struct Complex {
  float re, im;
  Complex(float r = 0, float i = 0) : re(r), im(i) {}
  Complex operator*(Complex o) const { return Complex(re * o.re - im * o.im, re * o.im + im * o.re); }
  Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  thread Complex &operator+=(Complex o) {
    re += o.re;
    im += o.im;
    return *this;
  }
};

static float3 force(device const Body *bodies, uint n, uint self) {
  float3 sum = 0;
  for (uint k = 0; k < n; k++) {
    if (k == self) continue;
    float3 d = bodies[k].position - bodies[self].position;
    float r2 = dot(d, d) + 1.0f;
    sum += d * (bodies[k].mass / r2);
  }
  return sum;
}

// Adds the pull of all others to each position, in place of a velocity.
kernel void n_body(device packed_float3 *out [[buffer(0)]], device const Body *bodies [[buffer(1)]], constant uint &n [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = bodies[i].position + force(bodies, n, i) * world::kStep;
  out[i].z *= 2;
  out[i].xy = out[i].yx;
}

// Every member of a body as a number.
kernel void describe(device float *out [[buffer(0)]], device Body *bodies [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  Body b = bodies[i];
  b.tag.bytes.x ^= 1;
  b.spin.axis.xz = half2(b.spin.rate);
  float v = 0;
  switch (b.shape) {
    case Shape::Sphere: v = length(float3(b.position)); break;
    case Shape::Box: v = b.position[0] * b.position[1] * b.position.z; break;
    default: v = world::Limits::kFloor[min(int(i), world::Limits::kMax - 1)]; break;
  }
  device float *row = out + i * 6;
  row[0] = v;
  row[1] = float(b.tag.bits);
  row[2] = float(b.spin.axis.x + b.spin.axis.y);
  row[3] = float(static_cast<uint>(b.shape));
  row[4] = as_type<float>(bodies[i].tag.bits & 0x7fffffffu);
  row[5] = dot(b.position, b.position) + dot(bodies[i].position, float3(0, 1, 0));
  bodies[i].position += float3(b.shape == Shape::Box);
}

// Where a ray enters a box: the slab test with vectors of bool.
kernel void boxes(device float4 *out [[buffer(0)]], device const packed_float3 *corners [[buffer(1)]], constant Ray &ray [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  const float3 low = corners[2 * i], high = corners[2 * i + 1];
  const float3 inverse = 1.0f / ray.direction;
  float3 t0 = (low - ray.origin) * inverse, t1 = (high - ray.origin) * inverse;
  const bool3 swap = t0 > t1;
  const float3 near = select(t0, t1, swap), far = select(t1, t0, swap);
  const float enter = max3(near.x, near.y, near.z), leave = min3(far.x, far.y, far.z);
  bool3 inside = ray.origin >= low && ray.origin <= high;
  const bool2 flat = !swap.xy;
  inside.yz = inside.yz || flat;
  Ray copy = ray;
  out[i] = float4(enter <= leave ? copy.at(enter).x : -1.0f, float(all(inside.xz)), dot(float3(near > 0.0f), float3(1, 2, 4)),
                  float((swap.x && !swap.y) || any(inside.zx)));
}

// Powers of a complex number, by operators.
kernel void spiral(device float2 *out [[buffer(0)]], constant float2 &z [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  Complex w(1), sum;
  const Complex step(z.x, z.y);
  for (uint k = 0; k < i; ++k) {
    sum += w;
    w = w * step + Complex(0.25f);
  }
  out[i] = float2(sum.re, sum.im) + float2{w.re, w.im};
}
`;

/** Random numbers, rotary embedding, a stencil, softmax through float4, colours. */
export const numeric = `#include <metal_stdlib>
#include <metal_pack>
using namespace metal;
#define N_SIMDWIDTH 32
#define MAX_OF(v) MAX(MAX(v[0], v[1]), MAX(v[2], v[3]))
#define MAX(x, y) ((x) > (y) ? (x) : (y))

// PCG random numbers, four at a time (Jarzynski and Olano, 2020).
uint4 pcg4d(uint4 v) {
  v = v * 1664525u + 1013904223u;
  v.x += v.y * v.w; v.y += v.z * v.x; v.z += v.x * v.y; v.w += v.y * v.z;
  v ^= v >> 16u;
  v.x += v.y * v.w; v.y += v.z * v.x; v.z += v.x * v.y; v.w += v.y * v.z;
  return v;
}
inline float uniform01(uint bits) { return as_type<float>((bits >> 9) | 0x3f800000u) - 1.0f; }

kernel void random_uniform(device float4 *out [[buffer(0)]], constant uint &seed [[buffer(1)]], uint2 p [[thread_position_in_grid]],
                           uint2 size [[threads_per_grid]]) {
  uint4 counter = uint4(p, seed, 0);
  float4 sum = 0;
  for (int round = 0; round < 3; round++, counter++) {
    const uint4 bits = pcg4d(counter);
    for (ushort k = 0; k < 4; ++k) sum[k] += uniform01(bits[k]);
  }
  ++counter.w;
  out[p.y * size.x + p.x] = sum + float4(counter--).w;
}

// Rotary embedding of pairs of a half4 row, angles in float.
kernel void rope(device half4 *x [[buffer(0)]], constant float &theta [[buffer(1)]], uint2 at [[thread_position_in_grid]],
                 uint2 grid [[threads_per_grid]]) {
  const float2 power = float2(2 * at.x, 2 * at.x + 1) / float(2 * grid.x);
  const float2 angle = float(at.y) * exp2(-power * log2(theta));
  float2 c, s = sincos(angle, c);
  device half4 &v = x[at.y * grid.x + at.x];
  const float4 f = float4(v);
  v = half4(f.xz * c - f.yw * s, f.xz * s + f.yw * c).xzyw;
}

// A five-point stencil of a tile with its halo, reflecting at the edges.
#define TILE 8
kernel void stencil(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], constant int2 &size [[buffer(2)]],
                    ushort2 local [[thread_position_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]],
                    ushort2 threads [[threads_per_threadgroup]]) {
  threadgroup float tile[TILE + 2][TILE + 2];
  const int2 origin = int2(group) * TILE - 1;
  for (int k = local.y * threads.x + local.x; k < (TILE + 2) * (TILE + 2); k += threads.x * threads.y) {
    const int2 in_tile = int2(k % (TILE + 2), k / (TILE + 2));
    int2 p = abs(origin + in_tile);
    p = select(p, 2 * (size - 1) - p, p >= size);
    tile[in_tile.y][in_tile.x] = in[p.y * size.x + p.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int2 p = origin + 1 + int2(local);
  if (all(p < size)) {
    const uint2 c = uint2(local) + 1;
    out[p.y * size.x + p.x] = tile[c.y][c.x] * -4 + tile[c.y - 1][c.x] + tile[c.y + 1][c.x] + tile[c.y][c.x - 1] + tile[c.y][c.x + 1];
  }
}

// Rows through float4: maximum, sum of exponentials, scaled; in the style of llama.cpp.
kernel void soft_max_4(device char *dst [[buffer(0)]], device const char *src0 [[buffer(1)]], constant int64_t &ne00 [[buffer(2)]],
                       constant uint64_t &nb01 [[buffer(3)]], threadgroup float *buf [[threadgroup(0)]],
                       uint tgpig [[threadgroup_position_in_grid]], uint tpitg [[thread_position_in_threadgroup]],
                       uint sgitg [[simdgroup_index_in_threadgroup]], uint tiisg [[thread_index_in_simdgroup]],
                       uint ntg [[threads_per_threadgroup]]) {
  device const float4 *psrc4 = (device const float4 *)(src0 + tgpig * nb01);
  device float4 *pdst4 = (device float4 *)(dst + tgpig * nb01);
  float4 lmax4 = -INFINITY;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) {
    lmax4 = fmax(lmax4, psrc4[i00]);
  }
  const float lmax = MAX_OF(lmax4);
  float max_val = simd_max(lmax);
  if (ntg > N_SIMDWIDTH) {
    if (sgitg == 0) buf[tiisg] = -INFINITY;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) buf[sgitg] = max_val;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    max_val = buf[tiisg];
    max_val = simd_max(max_val);
  }
  float4 lsum4 = 0.0f;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) {
    const float4 exp_psrc4 = exp(psrc4[i00] - max_val);
    lsum4 += exp_psrc4;
    pdst4[i00] = exp_psrc4;
  }
  const float lsum = lsum4[0] + lsum4[1] + lsum4[2] + lsum4[3];
  threadgroup_barrier(mem_flags::mem_none);
  float sum = simd_sum(lsum);
  if (ntg > N_SIMDWIDTH) {
    if (sgitg == 0) buf[tiisg] = 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tiisg == 0) buf[sgitg] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = buf[tiisg];
    sum = simd_sum(sum);
  }
  const float inv_sum = 1.0f / sum;
  for (int i00 = tpitg; i00 < ne00 / 4; i00 += ntg) {
    pdst4[i00] *= inv_sum;
  }
}

// Colours: unpacked, blended, packed; pixels of three bytes beside each other.
kernel void blend(device packed_uchar3 *out [[buffer(0)]], const device uint *rgba [[buffer(1)]], const device packed_uchar3 *under [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  const float4 over = unpack_unorm4x8_to_float(rgba[i]);
  const float3 below = float3(under[i]) / 255.0f;
  const float3 mixed = mix(below, over.rgb, over.a);
  out[i] = packed_uchar3(uchar3(rint(mixed * 255.0f)));
  out[i].g = max(out[i].g, under[i][0]);
}
`;
