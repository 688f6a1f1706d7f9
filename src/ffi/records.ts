import { Block } from "./block.ts";
import { accessCodes, bindingCodes, dispatchCodes, stateCodes } from "./generated/codes.ts";
import {
  packMABinding,
  packMAKernelDispatch,
  readMADeviceInfo,
  readMAPassInfo,
  structSizes,
} from "./generated/structs.ts";

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
  /** What the device keeps for the states of attention's splits; it grows to the largest need. */
  readonly scratchLength: number;
  readonly maxThreadgroupMemoryLength: number;
  /** Threads along x, y and z. */
  readonly maxThreadsPerThreadgroup: readonly [number, number, number];
  readonly hasUnifiedMemory: boolean;
}

/** @internal Reads `MADeviceInfo`. */
export function readDeviceInfo(block: Block): DeviceInfo {
  const { hasUnifiedMemory, maxThreadsPerThreadgroup, ...info } = readMADeviceInfo(block);
  const [x = 0, y = 0, z = 0] = maxThreadsPerThreadgroup;
  return { ...info, maxThreadsPerThreadgroup: [x, y, z], hasUnifiedMemory: hasUnifiedMemory !== 0 };
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
  /** When the pass was made, by the same clock. */
  readonly openTime: number;
  /** When it was committed; 0 until then. */
  readonly commitTime: number;
  /** Seconds between the device's begin and end. */
  readonly gpuTime: number;
}

const passStates = Object.keys(stateCodes) as (keyof typeof stateCodes)[];

/** @internal Reads `MAPassInfo`. */
export function readPassInfo(block: Block): PassInfo {
  const info = readMAPassInfo(block);
  return { ...info, state: passStates[info.state] ?? "failed", gpuTime: info.gpuEndTime - info.gpuStartTime };
}

/** What a pipeline allows. */
export interface PipelineInfo {
  readonly maxTotalThreadsPerThreadgroup: number;
  /** Threads of one SIMD group. */
  readonly threadExecutionWidth: number;
  /** Threadgroup memory that the kernel declares itself, in bytes. */
  readonly staticThreadgroupMemoryLength: number;
}

/** Bits of `MABinding.access`. */
export const accessBits = { ...accessCodes, "read-write": accessCodes.read | accessCodes.write } as const;

/** @internal One argument of a generic dispatch. */
export type BindingRecord =
  | {
      readonly kind: "buffer";
      readonly index: number;
      readonly buffer: number;
      readonly access: number;
      readonly offset: number;
      readonly length: number;
    }
  | { readonly kind: "bytes"; readonly index: number; readonly length: number; readonly bytes: number }
  | { readonly kind: "threadgroup"; readonly index: number; readonly length: number };

/** @internal Packs a list of `MABinding`, every field of each. */
export function packBindings(
  bindings: readonly BindingRecord[],
  block = new Block(Math.max(1, bindings.length) * structSizes.MABinding),
): Block {
  for (let position = 0; position < bindings.length; position++) {
    const binding = bindings[position] as BindingRecord;
    const { kind, index, length } = binding;
    packMABinding(block, (position * structSizes.MABinding) / 4, {
      index,
      kind: bindingCodes[kind],
      buffer: kind === "buffer" ? binding.buffer : 0,
      access: kind === "buffer" ? binding.access : 0,
      offset: kind === "buffer" ? binding.offset : 0,
      length,
      bytes: kind === "bytes" ? binding.bytes : 0,
    });
  }
  return block;
}

/** Whether a grid counts threadgroups or threads. */
export type DispatchForm = keyof typeof dispatchCodes;

/** Extents along x, y and z. */
export type Extent3 = readonly [x: number, y: number, z: number];

/** @internal What `MAKernelDispatch` holds. */
export interface KernelDispatchRecord {
  readonly pipeline: number;
  readonly form: DispatchForm;
  readonly grid: Extent3;
  readonly threadsPerThreadgroup: Extent3;
  readonly bindingCount: number;
  readonly bindings: Block;
}

/** @internal Packs `MAKernelDispatch`; `record.bindings` must outlive the call that reads it. */
export function packKernelDispatch(
  record: KernelDispatchRecord,
  block = new Block(structSizes.MAKernelDispatch),
): Block {
  const { pipeline, form, grid, threadsPerThreadgroup, bindingCount, bindings } = record;
  packMAKernelDispatch(block, 0, {
    pipeline,
    form: dispatchCodes[form],
    grid,
    threadsPerThreadgroup,
    bindingCount,
    bindings: bindings.address,
  });
  return block;
}
