import type { Block } from "./block.ts";
import { accessCodes, type dispatchCodes, stateCodes } from "./generated/codes.ts";
import { readMADeviceInfo, readMAPassInfo } from "./generated/structs.ts";

// Readers and writers of the structs of calls that are not hot.

/** What a device is and allows. Lengths in bytes. */
export interface DeviceInfo {
  readonly name: string;
  /** `Metal` on an Apple GPU, else `SoftMetal`: the CPU or an NVIDIA GPU. */
  readonly backend: string;
  readonly registryID: number;
  readonly maxBufferLength: number;
  readonly recommendedMaxWorkingSetSize: number;
  readonly currentAllocatedSize: number;
  /** Scratch that the device keeps: partial states of decode, decoded codes of prefill. It grows to the largest need. */
  readonly scratchLength: number;
  readonly maxThreadgroupMemoryLength: number;
  /** Threads along x, y and z. */
  readonly maxThreadsPerThreadgroup: readonly [number, number, number];
  readonly hasUnifiedMemory: boolean;
  /** Threads of a SIMD group. */
  readonly simdWidth: number;
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

/** Whether a grid counts threadgroups or threads. */
export type DispatchForm = keyof typeof dispatchCodes;

/** Extents along x, y and z. */
export type Extent3 = readonly [x: number, y: number, z: number];
