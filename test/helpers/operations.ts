import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  type Device,
  dequantizeKv,
  flashAttnDecode,
  flashAttnPrefill,
  hadamardQuantizeKv,
  hadamardQuantizeKvSeq,
  kvCacheAppend,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  mergeAttention,
} from "../../src/index.ts";
import { type Fields, type UntypedOp, untyped } from "./watched.ts";

/** An operation with arguments that it takes, of one stream and of two where it has both. */
export interface OperationSample {
  readonly name: string;
  readonly op: UntypedOp;
  readonly args: readonly Fields[];
}

/** Every operation that appends to a pass. */
export function operationSamples(device: Device): readonly OperationSample[] {
  const f32 = (...shape: number[]) => device.tensor("f32", shape);
  const bf16 = (...shape: number[]) => device.tensor("bf16", shape);
  const copy = (...src: number[]) => ({ src: f32(...src), cache: f32(2, 5, 64) });
  const codes = () => ({ packed: device.tensor("u8", [2, 5, 32]), norms: f32(2, 5, 1) });
  const encoded = (...src: number[]) => ({ src: f32(...src), ...codes() });
  const decoded = () => ({ ...codes(), out: f32(2, 3, 64) });
  const mask = device.tensor("bool", [6, 10]);
  const attention = { q: bf16(2, 6, 64), k: bf16(2, 10, 64), v: bf16(2, 10, 64), out: bf16(2, 6, 64) };
  const seqLens = device.tensor("i32", [1]);
  const token = () => ({ q: f32(4, 3, 64), out: f32(4, 3, 64) });
  const part = () => ({ out: f32(4, 64), lse: f32(4) });
  const both = (stream: () => Fields, rest: Fields): readonly Fields[] => [
    { ...stream(), ...rest },
    { k: stream(), v: stream(), ...rest },
  ];
  return [
    { name: "kvCacheAppend", op: untyped(kvCacheAppend), args: both(() => copy(3, 2, 64), { start: 1 }) },
    { name: "kvCacheCopy", op: untyped(kvCacheCopy), args: [{ src: f32(3, 8), cache: f32(5, 8), writePos: 1 }] },
    { name: "kvCacheCopyBatch", op: untyped(kvCacheCopyBatch), args: both(() => copy(2, 64), { seqPos: 1 }) },
    { name: "kvCacheCopySeq", op: untyped(kvCacheCopySeq), args: both(() => copy(3, 2, 64), { seqPosStart: 1 }) },
    {
      name: "kvCacheCopyHeadMajor",
      op: untyped(kvCacheCopyHeadMajor),
      args: [{ src: bf16(2, 3, 64), cache: bf16(2, 5, 64), seqPosStart: 1 }],
    },
    {
      name: "hadamardQuantizeKv",
      op: untyped(hadamardQuantizeKv),
      args: both(() => encoded(2, 64), { bits: 4, writePos: 1 }),
    },
    {
      name: "hadamardQuantizeKvSeq",
      op: untyped(hadamardQuantizeKvSeq),
      args: both(() => encoded(3, 2, 64), { bits: 4, writePosStart: 1 }),
    },
    { name: "dequantizeKv", op: untyped(dequantizeKv), args: both(decoded, { bits: 4, readPosStart: 1 }) },
    { name: "flashAttnPrefill", op: untyped(flashAttnPrefill), args: [{ ...attention, causal: true }] },
    {
      name: "flashAttnDecode",
      op: untyped(flashAttnDecode),
      args: [
        { ...token(), k: f32(2, 5, 64), v: bf16(2, 5, 64), lse: f32(4, 3), seqLens, sinks: f32(4) },
        { ...token(), k: { ...codes(), bits: 4 }, v: { ...codes(), bits: 4 }, seqLens, softcap: 3, window: 2 },
      ],
    },
    {
      name: "mergeAttention",
      op: untyped(mergeAttention),
      args: [{ parts: [part(), part()], out: bf16(4, 64), lse: f32(4) }],
    },
    { name: "buildCausalMask", op: untyped(buildCausalMask), args: [{ mask }] },
    { name: "buildSlidingWindowMask", op: untyped(buildSlidingWindowMask), args: [{ mask, window: 2 }] },
    { name: "classifyMaskTiles", op: untyped(classifyMaskTiles), args: [{ mask, headDim: 64 }] },
  ];
}
