/// The softmax of the query rows of a tile, leaf by leaf, and the state of a block.
///
/// A SIMD group has up to 32 / KEYS queries; in scores lane l stands for query
/// l / KEYS and key l % KEYS of a step, and a leaf is 32 / KEYS steps.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

using namespace metal;

/// What follows from the parameters for the scores of a lane's query.
struct ScoreRule {
  float factor;   ///< of a product, to the score
  float softcap;  ///< 0: none
  float slope;    ///< of ALiBi, a key further back
  int position;   ///< of the query, among all keys of which these may be a part

  float of(float product, int key) const {
    float score = product * factor;
    if (softcap != 0.0f) {
      score = softcap * precise::tanh(score / softcap);
    }
    return score + slope * float(key - position);
  }
};

/// e^x for differences of scores, which are small where it matters: a product of
/// the scores themselves with log2(e) would round them by as much as they are large.
inline float exp_of_difference(float x) { return precise::exp2(x * M_LOG2E_F); }

/// The softmax of a lane's query so far; the lanes of a query have the same.
struct Softmax {
  float maximum = -INFINITY;
  float sum = 0.0f;
};

/// Turns the scores of a leaf (-infinity: not seen) into weights relative to the
/// new maximum, and gives the factor that what came before takes. The sum adds
/// keys 16 apart first, then 8 and so on, however they lie over lanes and steps.
template <int KEYS, int STEPS>
inline float add_leaf(thread Softmax &softmax, thread float *scores) {
  float maximum = scores[0];
#pragma clang loop unroll(full)
  for (int step = 1; step < STEPS; step++) {
    maximum = max(maximum, scores[step]);
  }
#pragma clang loop unroll(full)
  for (int distance = 1; distance < KEYS; distance *= 2) {
    maximum = max(maximum, simd_shuffle_xor(maximum, ushort(distance)));
  }
  maximum = max(maximum, softmax.maximum);
  // While nothing has been seen any other number does.
  const float reference = maximum == -INFINITY ? 0.0f : maximum;
  const float factor = exp_of_difference(softmax.maximum - reference);
  float sums[STEPS];
#pragma clang loop unroll(full)
  for (int step = 0; step < STEPS; step++) {
    scores[step] = exp_of_difference(scores[step] - reference);
    sums[step] = scores[step];
  }
#pragma clang loop unroll(full)
  for (int distance = STEPS / 2; distance > 0; distance /= 2) {
#pragma clang loop unroll(full)
    for (int step = 0; step < distance; step++) {
      sums[step] += sums[step + distance];
    }
  }
  float sum = sums[0];
#pragma clang loop unroll(full)
  for (int distance = KEYS / 2; distance > 0; distance /= 2) {
    sum += simd_shuffle_xor(sum, ushort(distance));
  }
  softmax.sum = fma(softmax.sum, factor, sum);
  softmax.maximum = maximum;
  return factor;
}
