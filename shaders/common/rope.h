/// Rotary positions: the angle of a pair, and the pair turned by it.
#pragma once

#include <metal_stdlib>

#include "common/element.h"

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

/// Turns the coordinates at `from` and `from_second`; cosine and sine are those of the angle.
template <typename From, typename To>
inline void turn_pair(const device typename From::Bits *from, const device typename From::Bits *from_second,
                      device typename To::Bits *to, device typename To::Bits *to_second, float2 angle) {
  const float x = From::decode(*from);
  const float y = From::decode(*from_second);
  *to = To::encode(fma(x, angle.x, -(y * angle.y)));
  *to_second = To::encode(fma(y, angle.x, x * angle.y));
}

/// An element as it is: its bits where the dtype stays, any NaN's too.
template <typename From, typename To>
struct Kept {
  static typename To::Bits apply(typename From::Bits bits) { return To::encode(From::decode(bits)); }
};
template <typename Same>
struct Kept<Same, Same> {
  static typename Same::Bits apply(typename Same::Bits bits) { return bits; }
};

/// Two coordinates that do not turn.
template <typename From, typename To>
inline void keep_pair(const device typename From::Bits *from, const device typename From::Bits *from_second,
                      device typename To::Bits *to, device typename To::Bits *to_second) {
  const typename From::Bits x = *from;
  const typename From::Bits y = *from_second;
  *to = Kept<From, To>::apply(x);
  *to_second = Kept<From, To>::apply(y);
}

/// The heads of a thread: where its vectors begin in what is read and what is
/// written, in elements, how far apart they are, and how many.
struct HeadWalk {
  ulong from;
  ulong from_step;
  ulong to;
  ulong to_step;
  uint count;
};

/// Coordinates `column` and column + `apart` of each head, turned or kept.
template <typename From, typename To, bool TURNS>
inline void each_head(const device typename From::Bits *from, device typename To::Bits *to, HeadWalk walk, ulong column,
                      ulong apart, float2 angle) {
  from += walk.from + column;
  to += walk.to + column;
  for (uint i = 0; i < walk.count; i++) {
    if (TURNS) {
      turn_pair<From, To>(from, from + apart, to, to + apart, angle);
    } else {
      keep_pair<From, To>(from, from + apart, to, to + apart);
    }
    from += walk.from_step;
    to += walk.to_step;
  }
}

/// Pair `index` of `pairs` of each head. Neighbours in the pair where it is interleaved, else half of what turns apart.
template <typename From, typename To>
inline void turn_heads(const device typename From::Bits *from, device typename To::Bits *to, HeadWalk walk, uint index,
                       uint pairs, bool is_interleaved, float2 angle) {
  if (is_interleaved) {
    each_head<From, To, true>(from, to, walk, 2 * ulong(index), 1, angle);
  } else {
    each_head<From, To, true>(from, to, walk, index, pairs, angle);
  }
}

/// The same where pairs from `pairs` on may be there, which do not turn: `has_rest`.
/// Apart from it, since lanes go two ways then.
template <typename From, typename To>
inline void turn_or_keep_heads(const device typename From::Bits *from, device typename To::Bits *to, HeadWalk walk,
                               uint index, uint pairs, bool is_interleaved, bool has_rest, float2 angle) {
  if (!has_rest) {
    turn_heads<From, To>(from, to, walk, index, pairs, is_interleaved, angle);
  } else if (index < pairs) {
    turn_heads<From, To>(from, to, walk, index, pairs, is_interleaved, angle);
  } else {
    each_head<From, To, false>(from, to, walk, 2 * ulong(index), 1, angle);
  }
}
