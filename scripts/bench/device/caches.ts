import {
  applyRope,
  buildCausalMask,
  buildSlidingWindowMask,
  dequantizeKv,
  dtypeSize,
  type FloatDType,
  hadamardQuantizeKvSeq,
  kvCacheAppend,
  kvCacheBytes,
  kvCacheCopy,
  kvCacheCopySeq,
} from "../../../src/index.ts";
import type { DeviceRow } from "./row.ts";

const nKvHeads = 8;
const giga = 1e9;

function rows(dtype: FloatDType): DeviceRow {
  return {
    name: `copy-rows-${dtype}`,
    about: `kvCacheCopy of rows of 1,024 elements, ${dtype}`,
    unit: "GB/s of source",
    prepare(room, { source }) {
      const shape = [source / dtypeSize(dtype) / 1024, 1024];
      const [src, cache] = [room.normal(dtype, shape), room.empty(dtype, shape)];
      return {
        moved: 2 * source,
        work: source / giga,
        encode: (pass) => kvCacheCopy(pass, { src, cache, writePos: 0 }),
      };
    },
  };
}

function tokens(from: "f32" | "bf16", to: "f16" | "bf16"): DeviceRow {
  const headDim = 128;
  return {
    name: `copy-seq-${from}-${to}`,
    about: `kvCacheCopySeq, ${from} to ${to}, ${nKvHeads} heads, D = ${headDim}`,
    unit: "GB/s of source",
    prepare(room, { source }) {
      const count = source / dtypeSize(from) / (nKvHeads * headDim);
      const src = room.normal(from, [count, nKvHeads, headDim]);
      const cache = room.empty(to, [nKvHeads, count, headDim]);
      return {
        moved: source * (1 + dtypeSize(to) / dtypeSize(from)),
        work: source / giga,
        encode: (pass) => kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 }),
      };
    },
  };
}

type Bits = 2 | 3 | 4 | 5 | 6 | 8;

/** Codes of a width, in its packing unless that is named, as 5 and 6 bits have two. */
interface Codes {
  readonly bits: Bits;
  readonly packing?: "dense";
}

const namesOf = ({ bits, packing }: Codes) => ({
  name: packing === undefined ? `${bits}` : `${bits}-${packing}`,
  text: packing === undefined ? `${bits} bits` : `${bits} bits, ${packing}`,
});

/** Codes and norms of as many tokens as `source` bytes of f32 have. */
function quantizedShape(source: number, headDim: number, codes: Codes) {
  const capacity = source / 4 / (nKvHeads * headDim);
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity, ...codes });
  return {
    capacity,
    bytes: nKvHeads * capacity * (bytesPerRow + 4 * normsPerPos),
    packed: [nKvHeads, capacity, bytesPerRow],
    norms: [nKvHeads, capacity, normsPerPos],
  };
}

function encode(headDim: number, codes: Codes): DeviceRow {
  const { name, text } = namesOf(codes);
  return {
    name: `encode-${name}-d${headDim}`,
    about: `hadamardQuantizeKvSeq of f32 in ${text}, ${nKvHeads} heads, D = ${headDim}`,
    unit: "GB/s of source",
    prepare(room, { source }) {
      const shape = quantizedShape(source, headDim, codes);
      const src = room.normal("f32", [shape.capacity, nKvHeads, headDim]);
      const [packed, norms] = [room.empty("u8", shape.packed), room.empty("f32", shape.norms)];
      return {
        moved: source + shape.bytes,
        work: source / giga,
        encode: (pass) => hadamardQuantizeKvSeq(pass, { src, packed, norms, ...codes, writePosStart: 0 }),
      };
    },
  };
}

function decode(headDim: number, codes: Codes, to: FloatDType): DeviceRow {
  const { name, text } = namesOf(codes);
  return {
    name: `decode-${name}-d${headDim}-${to}`,
    about: `dequantizeKv of ${text} to ${to}, ${nKvHeads} heads, D = ${headDim}`,
    unit: "GB/s of values written",
    prepare(room, { source }) {
      const shape = quantizedShape(source, headDim, codes);
      const [packed, norms] = [room.codes(shape.packed), room.norms(shape.norms)];
      const out = room.empty(to, [nKvHeads, shape.capacity, headDim]);
      return {
        moved: out.byteLength + shape.bytes,
        work: out.byteLength / giga,
        encode: (pass) => dequantizeKv(pass, { packed, norms, out, ...codes, readPosStart: 0 }),
      };
    },
  };
}

function mask(window: number | undefined, dtype: "bf16" | "bool"): DeviceRow {
  const name = window === undefined ? "mask-causal" : "mask-window";
  return {
    name: dtype === "bf16" ? name : `${name}-${dtype}`,
    about: `${window === undefined ? "buildCausalMask" : "buildSlidingWindowMask"} in ${dtype}`,
    unit: "GB/s written",
    prepare(room, { source }) {
      const keys = 8192;
      const mask = room.empty(dtype, [source / dtypeSize(dtype) / keys, keys]);
      return {
        moved: source,
        work: source / giga,
        encode: (pass) =>
          window === undefined ? buildCausalMask(pass, { mask }) : buildSlidingWindowMask(pass, { mask, window }),
      };
    },
  };
}

const angles = { theta: 1e6, pairing: "half" } as const;

const rope: DeviceRow = {
  name: "rope-bf16",
  about: "applyRope of bf16 out of place, 8 heads, D = 128",
  unit: "GB/s of source",
  prepare(room, { source }) {
    const shape = [source / 2 / (nKvHeads * 128), nKvHeads, 128];
    const [x, out] = [room.normal("bf16", shape), room.empty("bf16", shape)];
    return {
      moved: 2 * source,
      work: source / giga,
      encode: (pass) => applyRope(pass, { x, out, layout: "sequence-major", ...angles }),
    };
  },
};

const append: DeviceRow = {
  name: "append-bf16",
  about: "kvCacheAppend of bf16, K turned, 8 heads, D = 128",
  unit: "GB/s of source",
  prepare(room, { source }) {
    const count = source / 4 / (nKvHeads * 128);
    const stream = () => ({
      src: room.normal("bf16", [count, nKvHeads, 128]),
      cache: room.empty("bf16", [nKvHeads, count, 128]),
    });
    const [k, v] = [stream(), stream()];
    return {
      moved: 2 * source,
      work: source / giga,
      encode: (pass) => kvCacheAppend(pass, { k, v, start: 0, rope: angles }),
    };
  },
};

/** Every width in every packing. */
const formats: readonly Codes[] = [
  ...([2, 3, 4, 5, 6, 8] as const).map((bits) => ({ bits })),
  ...([5, 6] as const).map((bits) => ({ bits, packing: "dense" as const })),
];

/** Kernels that memory bounds. */
export const cacheRows: readonly DeviceRow[] = [
  rows("f32"),
  rows("bf16"),
  tokens("f32", "f16"),
  tokens("bf16", "bf16"),
  append,
  rope,
  ...[64, 128, 256, 512].map((headDim) => encode(headDim, { bits: 4 })),
  ...formats.filter(({ bits }) => bits !== 4).map((codes) => encode(128, codes)),
  ...(["f32", "bf16", "f16"] as const).flatMap((to) => formats.map((codes) => decode(128, codes, to))),
  ...(["bf16", "bool"] as const).flatMap((dtype) => [mask(undefined, dtype), mask(1024, dtype)]),
];
