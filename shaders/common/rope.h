/// Rotary positions: the angle of a pair, and pairs of head vectors turned by theirs.
#pragma once

#include <metal_stdlib>

#include "common/element_run.h"

using namespace metal;

/// 1 / (2 pi) in two parts: the nearest float, and what it leaves.
constant constexpr float kTurnsPerRadian = 0.15915494f;
constant constexpr float kTurnsPerRadianRest = 6.4206382e-9f;

/// Cosines and sines of the angles of N pairs that are neighbours.
template <int N>
struct Angles {
  typename FloatRun<N>::Value cosine;
  typename FloatRun<N>::Value sine;
};

/// Those of position * frequency. The angle is formed in turns, in two floats, and
/// reduced before they are added: right to the last bits of a turn for positions up
/// to 2^24, where the plain product is off by a radian. What is left of whole
/// quarters, up to 1/8 of a turn either way, goes into polynomials fitted there,
/// off by 1.6 * 2^-24 of the result. The chains of several pairs go side by side.
template <int N>
inline Angles<N> rotation(float position, typename FloatRun<N>::Value frequency) {
  typedef typename FloatRun<N>::Value Value;
  typedef typename FloatRun<N>::Whole Whole;
  const Value turns = frequency * kTurnsPerRadian;
  const Value turns_rest = fma(frequency, Value(kTurnsPerRadian), -turns) + frequency * kTurnsPerRadianRest;
  const Value product = position * turns;
  const Value product_rest = fma(Value(position), turns, -product) + position * turns_rest;
  const Value turn = product - rint(product);
  const Value quarters = rint(4.0f * turn);
  // The rest is up to a quarter itself.
  const Value left = fma(quarters, Value(-0.25f), turn) + product_rest;
  const Value more = rint(4.0f * left);
  const Value t = fma(more, Value(-0.25f), left);
  const Value square = t * t;
  Value sine = fma(Value(41.58945f), square, Value(-76.701286f));
  sine = fma(fma(sine, square, Value(81.60523f)), square, Value(-41.3417f));
  sine = fma(t, Value(6.2831855f), t * square * sine);
  Value cosine = fma(Value(59.423943f), square, Value(-85.448814f));
  cosine = fma(fma(cosine, square, Value(64.93937f)), square, Value(-19.739208f));
  cosine = fma(cosine, square, Value(1.0f));
  const Whole quarter = Whole(quarters + more);
  const auto is_odd = (quarter & 1) != 0;
  const Value x = select(cosine, sine, is_odd);
  const Value y = select(sine, cosine, is_odd);
  return {select(x, -x, ((quarter + 1) & 2) != 0), select(y, -y, (quarter & 2) != 0)};
}

/// Those of run `index` of N pairs.
template <int N>
inline Angles<N> angles_of(float position, constant float *inv_freq, uint index, float scale) {
  typedef typename FloatRun<N>::Value Value;
  const Angles<N> angles = rotation<N>(position, ((constant Value *)inv_freq)[index]);
  return {scale * angles.cosine, scale * angles.sine};
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
