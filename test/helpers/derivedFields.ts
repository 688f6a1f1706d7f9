// What a kernel gets, beside what is computed in a test: each field of a struct of ShaderTypes.h, whether the caller
// gave it or the library filled it in.

import { expect } from "bun:test";
import type { Block } from "../../src/ffi/block.ts";
import type { MATensor } from "../../src/ffi/generated/structs.ts";
import { dtypeSize } from "../../src/index.ts";
import { dtypeCodes, type NativeScene, tensorRecord } from "./abi.ts";
import { type AbiRefusal, expectOk, expectRefused } from "./abiRefusals.ts";
import { struct } from "./packed.ts";
import { testTable } from "./table.ts";

export type Fields = Readonly<Record<string, number | readonly number[]>>;

/** The bytes of a struct by the library's own layout. */
export function bytesOf(name: string, fields: Fields): Uint8Array<ArrayBuffer> {
  const { size, fields: layout } = struct(name);
  expect(layout.map((field) => field.name).filter((field) => field !== "_pad")).toEqual(Object.keys(fields));
  const view = new DataView(new ArrayBuffer(size));
  for (const { name: field, offset, size: bytes, count, type } of layout) {
    const given = fields[field] ?? 0;
    for (const [i, value] of (typeof given === "number" ? [given] : given).entries()) {
      const at = offset + (i * bytes) / count;
      if (type === "f32") view.setFloat32(at, value, true);
      else if (type === "i64") view.setBigInt64(at, BigInt(value), true);
      else view.setInt32(at, value, true);
    }
  }
  return new Uint8Array(view.buffer);
}

/** A call whose argument struct may be changed before it is sent. */
export type Call = (pass: number, poke?: (block: Block) => void) => number;

/** A call without derived fields, and what its kernel must get. */
export interface PlainSample {
  readonly name: string;
  readonly call: Call;
  /** The dispatch among those of the call, the first unless given, and how many there are, 1 unless given. */
  readonly dispatch?: number;
  readonly dispatches?: number;
  /** Index of the parameters among the kernel's arguments, their struct and what it must hold. */
  readonly index: number;
  readonly struct: string;
  readonly fields: Fields;
}

export interface Sample extends PlainSample {
  /** Bytes before the parameters in the argument struct. */
  readonly start: number;
  /** The fields that the library fills in. */
  readonly derived: readonly string[];
  /** The argument of the package that a refusal names, where it is not called as the field is. */
  readonly named?: Readonly<Record<string, string>>;
}

/** A tensor in a buffer of its own. */
export function ownTensor(scene: NativeScene, dtype: keyof typeof dtypeCodes, elements: number): MATensor {
  const size = dtypeSize(dtype);
  const { handle } = scene.buffer(elements * size);
  return tensorRecord(handle, dtypeCodes[dtype], 0, elements * size);
}

/** Where a field stands in the argument struct. */
function offsetOf({ struct: name, start }: Sample, field: string): number {
  const found = struct(name).fields.find((each) => each.name === field);
  if (found === undefined) throw new Error(`no ${name}.${field}`);
  return start + found.offset;
}

const store = (offset: number, value: number) => (block: Block) =>
  new DataView(block.buffer).setInt32(offset, value, true);

/** Does something with a pass, which is then released. */
function inPass(scene: NativeScene, action: (pass: number) => void): void {
  const pass = scene.pass();
  action(pass);
  expectOk(scene, scene.native.ma_pass_release(pass));
}

/** Checks what the kernel of a pass's one call gets. */
function expectArgument(scene: NativeScene, pass: number, sample: PlainSample): void {
  const { dispatch = 0, dispatches = 1, index, struct: name, fields } = sample;
  expect(scene.describe(pass).length).toBe(dispatches);
  expect(scene.argumentBytes(pass, dispatch, index)).toEqual(bytesOf(name, fields));
}

/** Tests what kernels get of calls. */
export function testArguments(scene: NativeScene, name: string, samples: readonly PlainSample[]): void {
  testTable(name, samples, (sample) => {
    inPass(scene, (pass) => {
      expectOk(scene, sample.call(pass));
      expectArgument(scene, pass, sample);
    });
  });
}

/** Tests what kernels get where derived fields are 0 and where they are given, and that wrong ones are refused. */
export function testDerived(scene: NativeScene, samples: readonly Sample[]): void {
  testArguments(scene, "derived fields given as 0: what the kernel gets", samples);
  const cases = samples.flatMap((sample) =>
    sample.derived.map((field) => ({ sample, field, name: `${field} of ${sample.name}` })),
  );
  testTable("each derived field given right, and given wrong", cases, ({ sample, field }) => {
    const right = sample.fields[field] as number;
    const offset = offsetOf(sample, field);
    inPass(scene, (pass) => {
      for (const wrong of [right + 1, -1, right === 2 ? 3 : 2, 2 ** 31 - 1].filter((value) => value !== right)) {
        const says = [right, "0 lets the library fill it in"];
        const argument = sample.named?.[field] ?? field;
        const refusal: AbiRefusal = { name: field, status: "invalidArgument", argument, says };
        expectRefused(scene, pass, [], refusal, () => sample.call(pass, store(offset, wrong)));
      }
      expectOk(scene, sample.call(pass, store(offset, right)));
      expectArgument(scene, pass, sample);
    });
  });
}
