import * as z from "zod/mini";
import { refused } from "../checks.ts";
import { Block } from "../ffi/block.ts";
import type { Pointer } from "../ffi/memory.ts";
import { checkStatus } from "../ffi/status.ts";
import { type DType, dtypes } from "./dtypes.ts";
import { BufferMemory, type DeviceLifetime } from "./lifetime.ts";
import { parseOptions } from "./options.ts";
import { checkShape, elementCount } from "./tensor.ts";

const count = z.int().check(z.gte(0));
const u32 = z.int().check(z.gte(0), z.lte(0xffffffff));

const sharedTensor = z.strictObject({
  dtype: z.enum(Object.keys(dtypes) as [DType, ...DType[]]),
  shape: z.array(count),
  byteOffset: count,
  buffer: u32,
  process: count,
  number: count,
});

/**
 * Where another device of the same process finds a tensor: plain data, for
 * `postMessage`. It holds no memory.
 */
export interface SharedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** From the start of the buffer. */
  readonly byteOffset: number;
  /** The buffer's handle, and the process and the number that tell it from others of the same handle. */
  readonly buffer: number;
  readonly process: number;
  readonly number: number;
}

/** @internal What another device needs to find a tensor. */
export function shareTensor(
  { device, handle }: BufferMemory,
  dtype: DType,
  shape: readonly number[],
  byteOffset: number,
): SharedTensor {
  const out = new Block(16);
  checkStatus(device.native, device.native.ma_buffer_share(handle, out.bytes, out.bytes.subarray(8)));
  return { dtype, shape: [...shape], byteOffset, buffer: handle, process: out.getU64(0), number: out.getU64(2) };
}

/** @internal What a tensor is made of that another device has shared. */
interface AdoptedTensor {
  readonly memory: BufferMemory;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly byteOffset: number;
}

/** @internal Takes a share in the memory of a shared tensor. */
export function adoptTensor(device: DeviceLifetime, description: SharedTensor): AdoptedTensor {
  const { dtype, shape, byteOffset, ...shared } = parseOptions(sharedTensor, description, "description");
  const axes = checkShape(shape, "description.shape");
  const { native, handle } = device;
  const out = new Block(16);
  const [process, number] = [BigInt(shared.process), BigInt(shared.number)];
  checkStatus(native, native.ma_buffer_adopt(handle, shared.buffer, process, number, out.bytes, out.bytes.subarray(8)));
  const buffer = out.u32[0] as number;
  const address = out.getU64(2) as Pointer;
  checkStatus(native, native.ma_buffer_info(buffer, out.bytes, out.bytes.subarray(8)));
  const byteLength = out.getU64(0);
  const { size } = dtypes[dtype];
  const end = byteOffset + elementCount(axes) * size;
  if (byteOffset % size !== 0 || end > byteLength) {
    native.ma_buffer_release(buffer);
    throw refused(
      "description",
      `${dtype} [${axes}] from byte ${byteOffset} on does not lie in the ${byteLength} bytes that are shared`,
    );
  }
  return { memory: new BufferMemory(device, buffer, address, byteLength), dtype, shape: axes, byteOffset };
}
