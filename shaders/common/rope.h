/// Rotary positions: the angle of a pair, and pairs of head vectors turned by theirs.
#pragma once

#include <metal_stdlib>

#include "common/element_run.h"

using namespace metal;

/// 1 / (2 pi) in two parts: the nearest float, and what it leaves.
constant constexpr float kTurnsPerRadian = 0.15915494f;
constant constexpr float kTurnsPerRadianRest = 6.4206382e-9f;

/// (cos, sin) of position * frequency. The angle is formed in turns, in two
/// floats, and reduced before they are added: right to the last bits of a turn for
/// positions up to 2^24, where the plain product is off by a radian. What is left
/// of whole quarters, up to 1/8 of a turn either way, goes into polynomials fitted
/// there, off by 1.6 * 2^-24 of the result.
inline float2 rotation(float position, float frequency) {
  const float turns = frequency * kTurnsPerRadian;
  const float turns_rest = fma(frequency, kTurnsPerRadian, -turns) + frequency * kTurnsPerRadianRest;
  const float product = position * turns;
  const float product_rest = fma(position, turns, -product) + position * turns_rest;
  const float turn = product - rint(product);
  const float quarters = rint(4.0f * turn);
  // The rest is up to a quarter itself.
  const float left = fma(quarters, -0.25f, turn) + product_rest;
  const float more = rint(4.0f * left);
  const float t = fma(more, -0.25f, left);
  const float square = t * t;
  float sine = fma(fma(fma(41.58945f, square, -76.701286f), square, 81.60523f), square, -41.3417f);
  sine = fma(t, 6.2831855f, t * square * sine);
  float cosine = fma(fma(fma(59.423943f, square, -85.448814f), square, 64.93937f), square, -19.739208f);
  cosine = fma(cosine, square, 1.0f);
  const int quarter = int(quarters + more);
  const bool is_odd = (quarter & 1) != 0;
  const float2 at = is_odd ? float2(sine, cosine) : float2(cosine, sine);
  return float2(((quarter + 1) & 2) != 0 ? -at.x : at.x, (quarter & 2) != 0 ? -at.y : at.y);
}

/// Cosine and sine of the angles of N pairs that are neighbours.
template <int N>
struct Angles {
  typename FloatRun<N>::Value cosine;
  typename FloatRun<N>::Value sine;
};

/// Those of pair `index`.
inline Angles<1> angles_of(Angles<1>, float position, constant float *inv_freq, uint index, float scale) {
  const float2 angle = scale * rotation(position, inv_freq[index]);
  return {angle.x, angle.y};
}

/// Those of pairs 2 `index` and 2 `index` + 1.
inline Angles<2> angles_of(Angles<2>, float position, constant float *inv_freq, uint index, float scale) {
  const float2 frequencies = ((constant float2 *)inv_freq)[index];
  const float2 first = scale * rotation(position, frequencies.x);
  const float2 second = scale * rotation(position, frequencies.y);
  return {float2(first.x, second.x), float2(first.y, second.y)};
}

/// x and y of pairs that lie one after another, out of two runs of elements; and back.
inline void transpose_pairs(thread float &, thread float &) {}
inline void transpose_pairs(thread float2 &a, thread float2 &b) {
  const float y = a.y;
  a.y = b.x;
  b.x = y;
}

/// The heads of a thread: where its vectors begin in what is read and what is
/// written, how far apart they are, and how many. In runs of elements.
struct HeadWalk {
  ulong from;
  ulong from_step;
  ulong to;
  ulong to_step;
  uint count;
};

/// Runs `column` and column + `apart` of each head as they are.
template <typename From, typename To, int N>
inline void keep_heads(const device typename From::Bits *source, device typename To::Bits *target, HeadWalk walk,
                       ulong column, ulong apart) {
  typedef ElementRun<From, N> Source;
  typedef ElementRun<To, N> Target;
  const device typename Source::Bits *from = (const device typename Source::Bits *)source + walk.from + column;
  device typename Target::Bits *to = (device typename Target::Bits *)target + walk.to + column;
  for (uint i = 0; i < walk.count; i++) {
    const typename Source::Bits first = from[0];
    const typename Source::Bits second = from[apart];
    KeptRuns<Source, Target>::store(to, to + apart, first, second);
    from += walk.from_step;
    to += walk.to_step;
  }
}

/// The same, turned. They hold x and y of N pairs, or where it is interleaved the pairs one after another.
template <typename From, typename To, int N, bool IS_INTERLEAVED>
inline void turn_runs(const device typename From::Bits *source, device typename To::Bits *target, HeadWalk walk,
                      ulong column, ulong apart, Angles<N> angles) {
  typedef ElementRun<From, N> Source;
  typedef ElementRun<To, N> Target;
  typedef typename FloatRun<N>::Value Value;
  const device typename Source::Bits *from = (const device typename Source::Bits *)source + walk.from + column;
  device typename Target::Bits *to = (device typename Target::Bits *)target + walk.to + column;
  for (uint i = 0; i < walk.count; i++) {
    Value x = Source::decode(from[0]);
    Value y = Source::decode(from[apart]);
    if (IS_INTERLEAVED) {
      transpose_pairs(x, y);
    }
    Value a = fma(x, angles.cosine, -(y * angles.sine));
    Value b = fma(y, angles.cosine, x * angles.sine);
    if (IS_INTERLEAVED) {
      transpose_pairs(a, b);
    }
    Target::store(to, to + apart, a, b);
    from += walk.from_step;
    to += walk.to_step;
  }
}

/// N pairs from N * `index` on of each head, where N * `runs` turn. Neighbours in the pair where it is interleaved,
/// else half of what turns apart.
template <typename From, typename To, int N>
inline void turn_heads(const device typename From::Bits *from, device typename To::Bits *to, HeadWalk walk, uint index,
                       uint runs, bool is_interleaved, Angles<N> angles) {
  if (is_interleaved) {
    turn_runs<From, To, N, true>(from, to, walk, 2 * ulong(index), 1, angles);
  } else {
    turn_runs<From, To, N, false>(from, to, walk, index, runs, angles);
  }
}

/// The same where pairs behind those may be there, which do not turn: `has_rest`.
/// Apart from it, since lanes go two ways then.
template <typename From, typename To, int N>
inline void turn_or_keep_heads(const device typename From::Bits *from, device typename To::Bits *to, HeadWalk walk,
                               uint index, uint runs, bool is_interleaved, bool has_rest, Angles<N> angles) {
  if (!has_rest) {
    turn_heads<From, To, N>(from, to, walk, index, runs, is_interleaved, angles);
  } else if (index < runs) {
    turn_heads<From, To, N>(from, to, walk, index, runs, is_interleaved, angles);
  } else {
    keep_heads<From, To, N>(from, to, walk, 2 * ulong(index), 1);
  }
}
