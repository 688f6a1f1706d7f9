import { FFIType, ptr } from "bun:ffi";
import { compileC } from "../plain-c.ts";
import type { Peer, Problem } from "./problem.ts";

/** Attention as loops over floats; tensors [tokens, heads, size]. No intrinsics, no threads. */
const source = `
#include <math.h>
void attention(const float *q, const float *k, const float *v, float *out, float *scores,
               unsigned tokens, unsigned heads, unsigned size, unsigned causal) {
  const float scale = 1.0f / sqrtf((float)size);
  const unsigned stride = heads * size;
  for (unsigned head = 0; head < heads; ++head) {
    for (unsigned row = 0; row < tokens; ++row) {
      const float *query = q + row * stride + head * size;
      float *sum = out + row * stride + head * size;
      const unsigned keys = causal ? row + 1 : tokens;
      float maximum = -INFINITY;
      for (unsigned j = 0; j < keys; ++j) {
        const float *key = k + j * stride + head * size;
        float product = 0.0f;
        for (unsigned i = 0; i < size; ++i) product += query[i] * key[i];
        scores[j] = product * scale;
        maximum = fmaxf(maximum, scores[j]);
      }
      float total = 0.0f;
      for (unsigned i = 0; i < size; ++i) sum[i] = 0.0f;
      for (unsigned j = 0; j < keys; ++j) {
        const float *value = v + j * stride + head * size;
        const float weight = expf(scores[j] - maximum);
        total += weight;
        for (unsigned i = 0; i < size; ++i) sum[i] += weight * value[i];
      }
      for (unsigned i = 0; i < size; ++i) sum[i] /= total;
    }
  }
}`;

/** The loops in C, compiled by the clang that compiles the shaders. */
export function preparePlainC({ q, k, v, tokens, heads, headDim, causal }: Problem): Peer {
  const { ptr: pointer, u32 } = FFIType;
  const library = compileC(source, {
    attention: { args: [pointer, pointer, pointer, pointer, pointer, u32, u32, u32, u32], returns: FFIType.void },
  });
  const out = new Float32Array(q.length);
  const scores = new Float32Array(tokens);
  return {
    run() {
      const { attention } = library.symbols;
      attention(ptr(q), ptr(k), ptr(v), ptr(out), ptr(scores), tokens, heads, headDim, causal ? 1 : 0);
    },
    output: () => out,
    dispose: () => library.close(),
  };
}
