import { dtypeSize } from "../../src/index.ts";
import { dtypeCodes } from "../helpers/abi.ts";
import type { Random } from "./random.ts";
import type { Fields } from "./structs.ts";
import type { LiveBuffer, LivePass } from "./world.ts";

export type DType = keyof typeof dtypeCodes;

/** Places of a call's tensors, each in a buffer of its own. */
export class Places {
  readonly #free: LiveBuffer[];
  readonly #random: Random;

  constructor(pass: LivePass, random: Random) {
    this.#free = [...pass.device.buffers];
    this.#random = random;
  }

  /** The fields of a tensor of `elements` somewhere in a free buffer; undefined where none has room. */
  tensor(name: string, dtype: DType, elements: number): Fields | undefined {
    const length = elements * dtypeSize(dtype);
    const fitting = this.#free.filter((buffer) => buffer.length >= length);
    const buffer = this.#random.maybe(fitting);
    if (buffer === undefined) return undefined;
    this.#free.splice(this.#free.indexOf(buffer), 1);
    const offset = this.#random.below(Math.floor((buffer.length - length) / dtypeSize(dtype)) + 1);
    return {
      [`${name}.buffer`]: buffer.handle,
      [`${name}.dtype`]: dtypeCodes[dtype],
      [`${name}.offset`]: offset * dtypeSize(dtype),
      [`${name}.length`]: length,
    };
  }

  /** Several tensors; undefined where one has no room. */
  tensors(...wanted: readonly (readonly [name: string, dtype: DType, elements: number])[]): Fields | undefined {
    const fields: Record<string, number | bigint> = {};
    for (const [name, dtype, elements] of wanted) {
      const tensor = this.tensor(name, dtype, elements);
      if (tensor === undefined) return undefined;
      Object.assign(fields, tensor);
    }
    return fields;
  }
}

/** A derived field: right, or 0 for the library to fill in. */
export function givenOrDerived(random: Random, value: number): number {
  return random.chance(0.5) ? value : 0;
}

export function params(fields: Readonly<Record<string, number>>): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`params.${name}`, value]));
}

export function strides(
  name: string,
  batchStride: number,
  head: number,
  row: number,
): Readonly<Record<string, number>> {
  return { [`${name}[0]`]: batchStride, [`${name}[1]`]: head, [`${name}[2]`]: row };
}
