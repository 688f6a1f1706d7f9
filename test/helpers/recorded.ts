import { Device, type Tensor } from "../../src/index.ts";

/** Slots of the cache. */
export const capacity = 4;

/** A device with what is copied and where to. */
export interface CopyScene extends Disposable {
  readonly device: Device;
  readonly src: Tensor<"f32">;
  readonly cache: Tensor<"f32">;
}

/** A source of the row 1 2, and an empty cache of 4 slots. */
export function copyScene(): CopyScene {
  const device = Device.open();
  const src = device.tensor("f32", [1, 2]).set([1, 2]);
  const cache = device.tensor("f32", [capacity, 2]);
  return { device, src, cache, [Symbol.dispose]: () => device.dispose() };
}

/** The elements of a tensor. */
export const values = (tensor: Tensor) => [...tensor.toFloat32Array()];
