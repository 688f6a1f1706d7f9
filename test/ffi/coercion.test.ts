import { afterAll, describe, expect, test } from "bun:test";
import {
  Device,
  type DispatchDescription,
  flashAttnPrefill,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type Pass,
} from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";
import { type Fields, type UntypedOp, untyped } from "../helpers/watched.ts";

// bun:ffi turns each of these into some integer, a NULL or a wild pointer
// without a word. None may get that far.

const device = Device.open();
afterAll(() => device.dispose());

const rows = device.tensor("f32", [2, 8]);
const rowCache = device.tensor("f32", [4, 8]);
const token = device.tensor("f32", [2, 8]);
const tokens = device.tensor("f32", [3, 2, 8]);
const headCache = device.tensor("f32", [2, 4, 8]);
const headSource = device.tensor("bf16", [2, 3, 8]);
const headTarget = device.tensor("bf16", [2, 4, 8]);
const q = device.tensor("bf16", [1, 2, 4, 256]);
const k = device.tensor("bf16", [1, 2, 4, 256]);
const v = device.tensor("bf16", [1, 2, 4, 256]);
const out = device.tensor("bf16", [1, 2, 4, 256]);

interface Op {
  readonly name: string;
  readonly call: UntypedOp;
  /** Arguments that are accepted. */
  readonly valid: Fields;
  /** Integer arguments, and those of them that may be left out. */
  readonly integers: readonly string[];
  readonly optional: readonly string[];
  readonly flags: readonly string[];
  readonly tensors: readonly string[];
}

const ops: readonly Op[] = [
  {
    name: "kvCacheCopy",
    call: untyped(kvCacheCopy),
    valid: { src: rows, cache: rowCache, writePos: 1, nNew: 1, isSliding: false },
    integers: ["writePos", "nNew"],
    optional: ["nNew"],
    flags: ["isSliding"],
    tensors: ["src", "cache"],
  },
  {
    name: "kvCacheCopyBatch",
    call: untyped(kvCacheCopyBatch),
    valid: { src: token, cache: headCache, seqPos: 1 },
    integers: ["seqPos"],
    optional: [],
    flags: [],
    tensors: ["src", "cache"],
  },
  {
    name: "kvCacheCopySeq",
    call: untyped(kvCacheCopySeq),
    valid: { src: tokens, cache: headCache, seqPosStart: 1, nTokens: 2, srcTokOffset: 1 },
    integers: ["seqPosStart", "nTokens", "srcTokOffset"],
    optional: ["nTokens", "srcTokOffset"],
    flags: [],
    tensors: ["src", "cache"],
  },
  {
    name: "kvCacheCopyHeadMajor",
    call: untyped(kvCacheCopyHeadMajor),
    valid: { src: headSource, cache: headTarget, seqPosStart: 1, nTokens: 2, srcTokOffset: 1 },
    integers: ["seqPosStart", "nTokens", "srcTokOffset"],
    optional: ["nTokens", "srcTokOffset"],
    flags: [],
    tensors: ["src", "cache"],
  },
  {
    name: "flashAttnPrefill",
    call: untyped(flashAttnPrefill),
    valid: { q, k, v, out, qOffsetInK: 0, seqLenK: 3, kvCapacity: 4, causal: true, scale: 0.5 },
    integers: ["qOffsetInK", "seqLenK", "kvCapacity"],
    optional: ["qOffsetInK", "seqLenK", "kvCapacity"],
    flags: ["causal"],
    tensors: ["q", "k", "v", "out"],
  },
];

const badIntegers: readonly unknown[] = [
  Number.NaN,
  -1,
  2 ** 32,
  2 ** 32 + 5,
  1.5,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  "1",
  "",
  null,
  true,
  1n,
  Symbol.iterator,
  {},
  [],
  [1],
  () => 1,
  { valueOf: () => 1 },
];

const detached = new Uint8Array(8);
detached.buffer.transfer();

const badTensors: readonly unknown[] = [
  undefined,
  null,
  0,
  1,
  Number.NaN,
  1n,
  "tensor",
  true,
  {},
  [],
  () => rows,
  new Float32Array(16),
  new ArrayBuffer(64),
  detached,
  Object.create(Object.getPrototypeOf(rows)),
  { ...rows },
  new Proxy(rows, {}),
];

describe.each([...ops])("$name", ({ call, valid, integers, optional, flags, tensors }) => {
  /** Refused with the argument's name; nothing encoded, and the pass still takes the valid call. */
  function refuses(argument: string, args: Fields): void {
    using pass = device.pass();
    expectRefusal(() => call(pass, args), "invalid-argument", argument);
    expect(pass.describe()).toEqual([]);
    expect(pass.info.state).toBe("encoding");
  }

  test("takes the arguments that the other tests spoil", () => {
    using pass = device.pass();
    call(pass, valid);
    expect(pass.describe().length).toBe(1);
    pass.commitAndWait();
    expect(pass.info.state).toBe("completed");
  });

  test("refuses a pass that was committed", () => {
    using pass = device.pass();
    pass.commitAndWait();
    expectRefusal(() => call(pass, valid), "invalid-state", undefined);
    expect(pass.describe()).toEqual([]);
  });

  test("refuses every number that is no u32", () => {
    for (const name of integers) {
      for (const value of badIntegers) refuses(name, { ...valid, [name]: value });
      if (!optional.includes(name)) {
        refuses(name, { ...valid, [name]: undefined });
        const { [name]: _, ...missing } = valid;
        refuses(name, missing);
      }
    }
  });

  test("refuses every flag that is no boolean", () => {
    for (const name of flags) {
      for (const value of [0, 1, Number.NaN, "true", null, 1n, {}]) refuses(name, { ...valid, [name]: value });
    }
    expect(flags.length).toBe(Object.values(valid).filter((value) => typeof value === "boolean").length);
  });

  test("refuses every tensor that is none", () => {
    for (const name of tensors) {
      for (const value of badTensors) refuses(name, { ...valid, [name]: value });
    }
  });

  test("refuses a pass that is none, and arguments that are none", () => {
    for (const pass of [undefined, null, 0, 1, "pass", {}, device, rows]) {
      expectRefusal(() => call(pass as Pass, valid), "invalid-argument", "pass");
    }
    using pass = device.pass();
    for (const args of [undefined, null, 5, "args", true]) {
      expect(thrownBy(() => call(pass, args as unknown as Fields)).code).toBe("invalid-argument");
    }
    expect(pass.describe()).toEqual([]);
  });

  test("a getter that encodes another call leaves this call's arguments alone", () => {
    // The inner call leaves out what it can, so that its arguments differ.
    const required = Object.entries(valid).filter(([name]) => !optional.includes(name));
    const other = { ...Object.fromEntries(required), [integers[0] ?? ""]: 0 };
    for (const name of Object.keys(valid)) {
      using pass = device.pass();
      call(pass, valid);
      const sneaky = {
        ...valid,
        get [name]() {
          call(pass, other);
          return valid[name];
        },
      };
      call(pass, sneaky);
      const [plain, inner, outer, ...rest] = pass.describe();
      expect(rest).toEqual([]);
      expect(inner?.op).toBe(plain?.op as string);
      expect(inner).not.toMatchObject({ reads: plain?.reads, writes: plain?.writes });
      const { barrierBefore: _, ...expected } = plain as DispatchDescription;
      expect(outer).toMatchObject(expected);
    }
  });
});

describe("flashAttnPrefill", () => {
  test("refuses a scale that is no positive, finite number", () => {
    using pass = device.pass();
    for (const scale of [Number.NaN, 0, -1, Number.POSITIVE_INFINITY, 1e39, "1", null, 1n, {}]) {
      const call = () => flashAttnPrefill(pass, { q, k, v, out, scale: scale as number });
      expectRefusal(call, "invalid-argument", "scale");
    }
    expect(pass.describe()).toEqual([]);
  });

  test("refuses an unknown layout", () => {
    using pass = device.pass();
    for (const layout of ["rows", 1, null]) {
      const call = () => flashAttnPrefill(pass, { q, k, v, out, layout: layout as "head-major" });
      expectRefusal(call, "invalid-argument", "layout", "sequence-major");
    }
    expect(pass.describe()).toEqual([]);
  });
});
