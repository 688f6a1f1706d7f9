import { Block } from "./block.ts";

// Readers and writers of the structs of calls that are not hot.

/** What a device is and allows. Lengths in bytes. */
export interface DeviceInfo {
  readonly name: string;
  /** `Metal` on an Apple GPU, `SoftMetal` where kernels run on the CPU. */
  readonly backend: string;
  readonly registryID: number;
  readonly maxBufferLength: number;
  readonly recommendedMaxWorkingSetSize: number;
  readonly currentAllocatedSize: number;
  readonly maxThreadgroupMemoryLength: number;
  /** Threads along x, y and z. */
  readonly maxThreadsPerThreadgroup: readonly [number, number, number];
  readonly hasUnifiedMemory: boolean;
}

/** Bytes of each struct. */
export const recordSizes = {
  MADeviceInfo: 192,
  MAPassInfo: 24,
  MAConstant: 48,
  MAPipelineInfo: 16,
  MABinding: 40,
  MAKernelDispatch: 48,
} as const;

/** Reads `MADeviceInfo`. */
export function readDeviceInfo(block: Block): DeviceInfo {
  const { u32 } = block;
  return {
    name: block.getString(0, 64),
    backend: block.getString(64, 32),
    registryID: block.getU64(24),
    maxBufferLength: block.getU64(26),
    recommendedMaxWorkingSetSize: block.getU64(28),
    currentAllocatedSize: block.getU64(30),
    maxThreadgroupMemoryLength: u32[32] as number,
    maxThreadsPerThreadgroup: [u32[33] as number, u32[34] as number, u32[35] as number],
    hasUnifiedMemory: u32[36] !== 0,
  };
}

/** Where a pass is in its life. */
export type PassState = "encoding" | "committed" | "completed" | "failed";

/** State and times of a pass. */
export interface PassInfo {
  readonly state: PassState;
  /** Dispatches encoded so far. */
  readonly dispatches: number;
  /** When the device began, in seconds of its own clock; 0 until completed. */
  readonly gpuStartTime: number;
  /** When the device ended, in seconds of its own clock; 0 until completed. */
  readonly gpuEndTime: number;
  /** Seconds between the two. */
  readonly gpuTime: number;
}

/** States by their value in the C ABI. */
export const passStates: readonly PassState[] = ["encoding", "committed", "completed", "failed"];

/** Reads `MAPassInfo`. */
export function readPassInfo({ u32, f64 }: Block): PassInfo {
  const gpuStartTime = f64[1] as number;
  const gpuEndTime = f64[2] as number;
  return {
    state: passStates[u32[0] as number] ?? "failed",
    dispatches: u32[1] as number,
    gpuStartTime,
    gpuEndTime,
    gpuTime: gpuEndTime - gpuStartTime,
  };
}

/** What a pipeline allows. */
export interface PipelineInfo {
  readonly maxTotalThreadsPerThreadgroup: number;
  /** Threads of one SIMD group. */
  readonly threadExecutionWidth: number;
  /** Threadgroup memory that the kernel declares itself, in bytes. */
  readonly staticThreadgroupMemoryLength: number;
}

/** Reads `MAPipelineInfo`. */
export function readPipelineInfo({ u32 }: Block): PipelineInfo {
  return {
    maxTotalThreadsPerThreadgroup: u32[0] as number,
    threadExecutionWidth: u32[1] as number,
    staticThreadgroupMemoryLength: u32[2] as number,
  };
}

/** Values of `MABinding.kind`. */
export const bindingKinds = { buffer: 0, bytes: 1, threadgroup: 2 } as const;

/** Bits of `MABinding.access`. */
export const accessBits = { read: 1, write: 2, "read-write": 3 } as const;

/** One argument of a generic dispatch. */
export type BindingRecord =
  | {
      readonly kind: "buffer";
      readonly index: number;
      readonly buffer: number;
      readonly access: number;
      readonly offset: number;
      readonly length: number;
    }
  | { readonly kind: "bytes"; readonly index: number; readonly length: number; readonly address: number }
  | { readonly kind: "threadgroup"; readonly index: number; readonly length: number };

/** Packs a list of `MABinding`, every field of each. */
export function packBindings(
  bindings: readonly BindingRecord[],
  block = new Block(Math.max(1, bindings.length) * recordSizes.MABinding),
): Block {
  const { u32 } = block;
  for (let position = 0; position < bindings.length; position++) {
    const binding = bindings[position] as BindingRecord;
    const word = (position * recordSizes.MABinding) / 4;
    u32[word] = binding.index;
    u32[word + 1] = bindingKinds[binding.kind];
    u32[word + 2] = binding.kind === "buffer" ? binding.buffer : 0;
    u32[word + 3] = binding.kind === "buffer" ? binding.access : 0;
    block.setU64(word + 4, binding.kind === "buffer" ? binding.offset : 0);
    block.setU64(word + 6, binding.length);
    block.setU64(word + 8, binding.kind === "bytes" ? binding.address : 0);
  }
  return block;
}

/** Values of `MAKernelDispatch.form`. */
export const dispatchForms = { threadgroups: 0, threads: 1 } as const;

/** Whether a grid counts threadgroups or threads. */
export type DispatchForm = keyof typeof dispatchForms;

/** Extents along x, y and z. */
export type Extent3 = readonly [x: number, y: number, z: number];

/** What `MAKernelDispatch` holds. */
export interface KernelDispatchRecord {
  readonly pipeline: number;
  readonly form: DispatchForm;
  readonly grid: Extent3;
  readonly threadsPerThreadgroup: Extent3;
  readonly bindingCount: number;
  readonly bindings: Block;
}

/** Packs `MAKernelDispatch`; `record.bindings` must outlive the call that reads it. */
export function packKernelDispatch(
  record: KernelDispatchRecord,
  block = new Block(recordSizes.MAKernelDispatch),
): Block {
  block.u32[0] = record.pipeline;
  block.u32[1] = dispatchForms[record.form];
  block.u32.set(record.grid, 2);
  block.u32.set(record.threadsPerThreadgroup, 5);
  block.u32[8] = record.bindingCount;
  block.setU64(10, record.bindings.address);
  return block;
}
