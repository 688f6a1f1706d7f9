#include <metal_stdlib>
using namespace metal;

// ---- CRC32 by a table computed at compile time
struct CrcTable { uint entry[256]; };
constexpr CrcTable make_table() {
  CrcTable t{};
  for (uint n = 0; n < 256; ++n) {
    uint c = n;
    for (int k = 0; k < 8; ++k) c = (c & 1) ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t.entry[n] = c;
  }
  return t;
}
constant CrcTable kCrc = make_table();
kernel void crc32(device uint *out [[buffer(0)]], device const uchar *bytes [[buffer(1)]], constant uint &length [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  uint c = ~0u;
  device const uchar *p = bytes + i * length, *end = p + length;
  while (p != end) c = kCrc.entry[(c ^ *p++) & 0xff] ^ (c >> 8);
  out[i] = ~c;
}

// ---- SHA-256
constant uint K256[64] = {
  0x428a2f98,0x71374491,0xb5c0fbcf,0xe9b5dba5,0x3956c25b,0x59f111f1,0x923f82a4,0xab1c5ed5,0xd807aa98,0x12835b01,0x243185be,0x550c7dc3,0x72be5d74,0x80deb1fe,0x9bdc06a7,0xc19bf174,
  0xe49b69c1,0xefbe4786,0x0fc19dc6,0x240ca1cc,0x2de92c6f,0x4a7484aa,0x5cb0a9dc,0x76f988da,0x983e5152,0xa831c66d,0xb00327c8,0xbf597fc7,0xc6e00bf3,0xd5a79147,0x06ca6351,0x14292967,
  0x27b70a85,0x2e1b2138,0x4d2c6dfc,0x53380d13,0x650a7354,0x766a0abb,0x81c2c92e,0x92722c85,0xa2bfe8a1,0xa81a664b,0xc24b8b70,0xc76c51a3,0xd192e819,0xd6990624,0xf40e3585,0x106aa070,
  0x19a4c116,0x1e376c08,0x2748774c,0x34b0bcb5,0x391c0cb3,0x4ed8aa4a,0x5b9cca4f,0x682e6ff3,0x748f82ee,0x78a5636f,0x84c87814,0x8cc70208,0x90befffa,0xa4506ceb,0xbef9a3f7,0xc67178f2};
#define ROTR(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define CH(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define MAJ(x, y, z) (((x) & (y)) ^ ((x) & (z)) ^ ((y) & (z)))
#define EP0(x) (rotate(x, 30u) ^ rotate(x, 19u) ^ rotate(x, 10u))
#define EP1(x) (ROTR(x, 6) ^ ROTR(x, 11) ^ ROTR(x, 25))
#define SIG0(x) (ROTR(x, 7) ^ ROTR(x, 18) ^ ((x) >> 3))
#define SIG1(x) (ROTR(x, 17) ^ ROTR(x, 19) ^ ((x) >> 10))
typedef struct SHA256_CTX { uchar data[64]; uint datalen; ulong bitlen; uint state[8]; } SHA256_CTX;
static void sha256_transform(thread SHA256_CTX *ctx) {
  uint m[64], v[8];
  for (int i = 0, j = 0; i < 16; ++i, j += 4)
    m[i] = (uint(ctx->data[j]) << 24) | (uint(ctx->data[j + 1]) << 16) | (uint(ctx->data[j + 2]) << 8) | ctx->data[j + 3];
  for (int i = 16; i < 64; ++i) m[i] = SIG1(m[i - 2]) + m[i - 7] + SIG0(m[i - 15]) + m[i - 16];
  for (int i = 0; i < 8; ++i) v[i] = ctx->state[i];
  for (int i = 0; i < 64; ++i) {
    uint t1 = v[7] + EP1(v[4]) + CH(v[4], v[5], v[6]) + K256[i] + m[i];
    uint t2 = EP0(v[0]) + MAJ(v[0], v[1], v[2]);
    v[7] = v[6]; v[6] = v[5]; v[5] = v[4]; v[4] = v[3] + t1; v[3] = v[2]; v[2] = v[1]; v[1] = v[0]; v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) ctx->state[i] += v[i];
}
static void sha256_init(thread SHA256_CTX *ctx) {
  constexpr uint h[8] = {0x6a09e667,0xbb67ae85,0x3c6ef372,0xa54ff53a,0x510e527f,0x9b05688c,0x1f83d9ab,0x5be0cd19};
  ctx->datalen = 0; ctx->bitlen = 0;
  for (int i = 0; i < 8; ++i) ctx->state[i] = h[i];
}
static void sha256_update(thread SHA256_CTX *ctx, device const uchar *data, size_t len) {
  for (size_t i = 0; i < len; ++i) {
    ctx->data[ctx->datalen++] = data[i];
    if (ctx->datalen == 64) { sha256_transform(ctx); ctx->bitlen += 512; ctx->datalen = 0; }
  }
}
static void sha256_final(thread SHA256_CTX *ctx, device uchar *hash) {
  uint i = ctx->datalen;
  ctx->data[i++] = 0x80;
  if (ctx->datalen < 56) { while (i < 56) ctx->data[i++] = 0x00; }
  else { while (i < 64) ctx->data[i++] = 0; sha256_transform(ctx); for (uint k = 0; k < 56; ++k) ctx->data[k] = 0; }
  ctx->bitlen += ctx->datalen * 8;
  for (int k = 0; k < 8; ++k) ctx->data[63 - k] = uchar(ctx->bitlen >> (8 * k));
  sha256_transform(ctx);
  for (i = 0; i < 4; ++i)
    for (uint w = 0; w < 8; ++w) hash[i + 4 * w] = (ctx->state[w] >> (24 - i * 8)) & 0xff;
}
kernel void sha256(device uchar *out [[buffer(0)]], device const uchar *in [[buffer(1)]], device const uint2 *spans [[buffer(2)]], uint gid [[thread_position_in_grid]]) {
  SHA256_CTX ctx;
  sha256_init(&ctx);
  sha256_update(&ctx, in + spans[gid].x, spans[gid].y);
  sha256_final(&ctx, out + gid * 32);
}

// ---- scan in one pass, decoupled look-back
#define FLAG_NOT_READY (0u)
#define FLAG_AGGREGATE (1u << 30)
#define FLAG_PREFIX (2u << 30)
#define VALUE_MASK 0x3fffffffu
kernel void scan_lookback(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]], volatile device atomic_uint *status [[buffer(2)]], device atomic_uint &ticket [[buffer(3)]],
                          constant uint &count [[buffer(4)]], uint lid [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                          uint size [[threads_per_threadgroup]]) {
  threadgroup uint part, before;
  threadgroup uint sums[32];
  if (lid == 0) part = atomic_fetch_add_explicit(&ticket, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint at = part * size + lid;
  const uint x = at < count ? in[at] : 0;
  uint inclusive = simd_prefix_inclusive_sum(x);
  if (lane == 31) sums[sg] = inclusive;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0) {
    const uint s = lane < size / 32 ? sums[lane] : 0;
    sums[lane] = simd_prefix_exclusive_sum(s);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  inclusive += sums[sg];
  if (lid == size - 1) {
    if (part == 0) {
      atomic_store_explicit(&status[0], FLAG_PREFIX | inclusive, memory_order_relaxed);
      before = 0;
    } else {
      atomic_store_explicit(&status[part], FLAG_AGGREGATE | inclusive, memory_order_relaxed);
      uint sum = 0;
      for (uint look = part - 1;;) {
        const uint s = atomic_load_explicit(&status[look], memory_order_relaxed);
        if ((s & ~VALUE_MASK) == FLAG_NOT_READY) continue;
        sum += s & VALUE_MASK;
        if ((s & ~VALUE_MASK) == FLAG_PREFIX) break;
        look--;
      }
      before = sum;
      atomic_store_explicit(&status[part], FLAG_PREFIX | (sum + inclusive), memory_order_relaxed);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at < count) out[at] = before + inclusive;
}

// ---- hash table, open addressing
constant uint kEmpty = 0xffffffff;
struct KeyValue { uint key; uint value; };
struct Slot { atomic_uint key; atomic_uint value; };
static uint murmur(uint k) { k ^= k >> 16; k *= 0x85ebca6b; k ^= k >> 13; k *= 0xc2b2ae35; k ^= k >> 16; return k; }
kernel void hash_insert(device Slot *table [[buffer(0)]], device const KeyValue *pairs [[buffer(1)]], constant uint &capacity [[buffer(2)]], uint tid [[thread_position_in_grid]]) {
  const KeyValue kv = pairs[tid];
  uint slot = murmur(kv.key) & (capacity - 1);
  for (;;) {
    uint expected = kEmpty;
    while (!atomic_compare_exchange_weak_explicit(&table[slot].key, &expected, kv.key, memory_order_relaxed, memory_order_relaxed) && expected == kEmpty) {}
    if (expected == kEmpty || expected == kv.key) {
      atomic_fetch_add_explicit(&table[slot].value, kv.value, memory_order_relaxed);
      return;
    }
    slot = (slot + 1) & (capacity - 1);
  }
}

// ---- stream compaction with ballots
kernel void compact(device uint *out [[buffer(0)]], device const int *in [[buffer(1)]], device atomic_uint *total [[buffer(2)]], uint i [[thread_position_in_grid]],
                    ushort lane [[thread_index_in_simdgroup]]) {
  const bool keep = in[i] > 0;
  const simd_vote vote = simd_ballot(keep);
  const ulong mask = (ulong)vote;
  const uint rank = popcount(uint(mask) & ((1u << lane) - 1));
  uint base = 0;
  if (simd_is_first()) base = atomic_fetch_add_explicit(total, popcount(uint(mask)), memory_order_relaxed);
  base = simd_broadcast_first(base);
  if (keep) out[base + rank] = in[i];
}

// ---- Morton codes
static uint expand(uint v) {
  v = (v * 0x00010001u) & 0xFF0000FFu;
  v = (v * 0x00000101u) & 0x0F00F00Fu;
  v = (v * 0x00000011u) & 0xC30C30C3u;
  v = (v * 0x00000005u) & 0x49249249u;
  return v;
}
kernel void morton(device uint *out [[buffer(0)]], device const packed_float3 *p [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const uint3 q = uint3(clamp(float3(p[i]) * 1024.0f, 0.0f, 1023.0f));
  const uint3 e(expand(q.x), expand(q.y), expand(q.z));
  out[i] = dot(float3(1), float3(0)) == 0 ? e.x * 4 + e.y * 2 + e.z : 0;
}

// ---- life
kernel void life(device uchar *next [[buffer(0)]], device const uchar *now [[buffer(1)]], constant int2 &size [[buffer(2)]], uint2 g [[thread_position_in_grid]]) {
  if (any(int2(g) >= size)) return;
  int n = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      if ((dx | dy) == 0) continue;
      const int2 p = (int2(g) + int2(dx, dy) + size) % size;
      n += now[p.y * size.x + p.x];
    }
  next[g.y * size.x + g.x] = n == 3 || (n == 2 && now[g.y * size.x + g.x]);
}

// ---- mandelbrot
kernel void mandelbrot(device uint *out [[buffer(0)]], constant float4 &view [[buffer(1)]], uint2 g [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
  const float2 c = view.xy + view.zw * (float2(g) / float2(n));
  float2 z = 0;
  uint k = 0;
  do {
    z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
  } while (++k < 255 && dot(z, z) <= 4);
  out[g.y * n.x + g.x] = k;
}

// ---- BFS, one level
struct Graph { device const uint *offsets; device const uint *edges; };
kernel void bfs(device atomic_int *depth [[buffer(0)]], device const uint *offsets [[buffer(1)]], device const uint *edges [[buffer(2)]], constant int &level [[buffer(3)]], device atomic_uint *changed [[buffer(4)]],
                uint v [[thread_position_in_grid]]) {
  Graph g{offsets, edges};
  if (atomic_load_explicit(depth + v, memory_order_relaxed) != level) return;
  for (uint e = g.offsets[v]; e < g.offsets[v + 1]; ++e) {
    int unseen = -1;
    if (atomic_compare_exchange_weak_explicit(&depth[g.edges[e]], &unseen, level + 1, memory_order_relaxed, memory_order_relaxed))
      atomic_fetch_or_explicit(changed, 1u, memory_order_relaxed);
  }
}

// ---- argument structs with nested arrays
struct Layer { float weights[3][4]; float bias[3]; uchar flags[5]; packed_short3 at; };
struct Network { uint depth; Layer layers[2]; struct { half scale; bool on[3]; } tail; float4x4 m; };
kernel void network(device float *out [[buffer(0)]], constant Network &net [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float4 x = float4(i, 1, 2, 3);
  for (uint l = 0; l < net.depth; ++l) {
    const constant Layer &layer = net.layers[l];
    float y[3];
    for (int r = 0; r < 3; ++r) {
      y[r] = layer.bias[r];
      for (int c = 0; c < 4; ++c) y[r] += layer.weights[r][c] * x[c];
      y[r] += layer.at[r] * layer.flags[r + 2];
    }
    x = float4(y[0], y[1], y[2], net.tail.on[l] ? float(net.tail.scale) : 0.0f);
  }
  x = net.m * x;
  out[i] = x.x + 10 * x.y + 100 * x.z + 1000 * x.w;
}

// ---- transpose with padding, 3-D grids, jacobi
template <typename T, uint TILE = 16, uint ROWS = 4>
kernel void transpose_tiles(device T *out, device const T *in, constant uint2 &size, uint2 t [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]]) {
  threadgroup T tile[TILE][TILE + 1];
  for (uint j = 0; j < TILE; j += ROWS) {
    const uint2 p = g * TILE + t + uint2(0, j);
    if (all(p < size)) tile[t.y + j][t.x] = in[p.y * size.x + p.x];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < TILE; j += ROWS) {
    const uint2 p = g.yx * TILE + t + uint2(0, j);
    if (all(p < size.yx)) out[p.y * size.y + p.x] = tile[t.x][t.y + j];
  }
}
template [[host_name("transpose_float")]] kernel void transpose_tiles<float>(device float *, device const float *, constant uint2 &, uint2, uint2);
template [[host_name("transpose_uchar4")]] kernel void transpose_tiles<uchar4, 8, 8>(device uchar4 *, device const uchar4 *, constant uint2 &, uint2, uint2);

kernel void jacobi(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], device atomic_float *residual [[buffer(2)]], constant uint3 &n [[buffer(3)]], uint3 g [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const uint3 stride(1, n.x, n.x * n.y);
  const uint at = g.x * stride.x + g.y * stride.y + g.z * stride.z;
  float value = in[at];
  if (all(g > 0u) && all(g < n - 1u)) {
    value = (in[at - 1] + in[at + 1] + in[at - stride.y] + in[at + stride.y] + in[at - stride.z] + in[at + stride.z]) / 6.0f;
  }
  out[at] = value;
  const float change = simd_sum(abs(value - in[at]));
  if (lane == 0) atomic_fetch_add_explicit(residual, change, memory_order_relaxed);
}
