import { FFIType, ptr } from "bun:ffi";
import { boundariesOf, centroidsOf, hadamardSign } from "../../src/reference/index.ts";
import { compileC } from "./plain-c.ts";

/**
 * The 4-bit Hadamard cache as loops over floats. Vectors to encode are
 * [tokens, heads, size], decoded ones [heads, tokens, size], packed
 * [heads, tokens, size / 2], norms [heads, tokens]. No intrinsics, no threads.
 */
const source = `
#include <math.h>
enum { largest = 256 };

static void transform(float *x, unsigned size) {
  for (unsigned step = 1; step < size; step *= 2) {
    for (unsigned first = 0; first < size; first += 2 * step) {
      for (unsigned i = first; i < first + step; ++i) {
        const float low = x[i], high = x[i + step];
        x[i] = low + high;
        x[i + step] = low - high;
      }
    }
  }
}

static unsigned code(float z, const float *boundaries) {
  unsigned low = 0;
  for (unsigned half = 8; half > 0; half /= 2) low += z > boundaries[low + half - 1] ? half : 0;
  return low;
}

void quantize(const float *src, unsigned char *packed, float *norms, const float *signs, const float *boundaries,
              unsigned tokens, unsigned heads, unsigned size) {
  for (unsigned token = 0; token < tokens; ++token) {
    for (unsigned head = 0; head < heads; ++head) {
      const float *vector = src + ((unsigned long)token * heads + head) * size;
      const unsigned long row = (unsigned long)head * tokens + token;
      float y[largest];
      for (unsigned i = 0; i < size; ++i) y[i] = vector[i] * signs[i];
      transform(y, size);
      float squares = 0.0f;
      for (unsigned i = 0; i < size; ++i) squares += y[i] * y[i];
      const float norm = sqrtf(squares / (float)size);
      norms[row] = norm;
      // The transform's own 1 / sqrt(size) and the sqrt(size) of the scale cancel out.
      const float factor = norm > 1e-10f ? 1.0f / norm : 0.0f;
      unsigned char *bytes = packed + row * (size / 2);
      for (unsigned i = 0; i < size / 2; ++i) {
        bytes[i] = code(y[2 * i] * factor, boundaries) | code(y[2 * i + 1] * factor, boundaries) << 4;
      }
    }
  }
}

void dequantize(const unsigned char *packed, const float *norms, float *out, const float *signs,
                const float *centroids, unsigned rows, unsigned size) {
  for (unsigned row = 0; row < rows; ++row) {
    const unsigned char *bytes = packed + (unsigned long)row * (size / 2);
    float *x = out + (unsigned long)row * size;
    for (unsigned i = 0; i < size / 2; ++i) {
      x[2 * i] = centroids[bytes[i] & 15];
      x[2 * i + 1] = centroids[bytes[i] >> 4];
    }
    transform(x, size);
    const float factor = norms[row] / (float)size;
    for (unsigned i = 0; i < size; ++i) x[i] *= signs[i] * factor;
  }
}`;

/** Extents of a cache, and what lies in it. */
export interface CacheInC {
  readonly tokens: number;
  readonly heads: number;
  readonly headDim: number;
  /** f32 [tokens, heads, headDim] to encode. */
  readonly src: Float32Array;
  readonly packed: Uint8Array;
  readonly norms: Float32Array;
  /** f32 [heads, tokens, headDim], decoded. */
  readonly out: Float32Array;
}

/** Both directions, compiled by the clang that compiles the shaders. */
export function prepareQuantizeInC({ tokens, heads, headDim, src, packed, norms, out }: CacheInC) {
  const { ptr: pointer, u32, void: nothing } = FFIType;
  const library = compileC(source, {
    quantize: { args: [pointer, pointer, pointer, pointer, pointer, u32, u32, u32], returns: nothing },
    dequantize: { args: [pointer, pointer, pointer, pointer, pointer, u32, u32], returns: nothing },
  });
  const { quantize, dequantize } = library.symbols;
  const signs = Float32Array.from({ length: headDim }, (_, i) => hadamardSign(i));
  const boundaries = new Float32Array(boundariesOf(4));
  const centroids = new Float32Array(centroidsOf(4));
  return {
    quantize: () => quantize(ptr(src), ptr(packed), ptr(norms), ptr(signs), ptr(boundaries), tokens, heads, headDim),
    dequantize: () =>
      dequantize(ptr(packed), ptr(norms), ptr(out), ptr(signs), ptr(centroids), heads * tokens, headDim),
    dispose: () => library.close(),
  };
}
