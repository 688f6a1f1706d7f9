import { afterAll, describe, expect, test } from "bun:test";
import { Device, type FieldType, type FieldTypes, type Struct, struct } from "../../src/index.ts";
import { types } from "../../src/struct/types.ts";
import { thrownBy } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

/** Metal's names of the scalars. */
const scalarNames: Readonly<Record<string, string>> = {
  bool: "bool",
  u8: "uchar",
  i8: "char",
  u16: "ushort",
  i16: "short",
  u32: "uint",
  i32: "int",
  u64: "ulong",
  i64: "long",
  f16: "half",
  bf16: "bfloat",
  f32: "float",
};

/** Writes the structs of a shader, inner ones first. */
class Source {
  readonly structs: string[] = [];

  /** A field's declaration. */
  #declare(type: FieldType, name: string): string {
    if (typeof type === "string") return `${scalarNames[type] ?? type} ${name}`;
    if ("pack" in type) return `${this.define(type)} ${name}`;
    const [element, length] = type as readonly [FieldType, number];
    return this.#declare(element, `${name}[${length}]`);
  }

  /** Defines a struct; returns its name. */
  define({ fields }: Struct): string {
    const members = Object.entries(fields).map(([name, type]) => `${this.#declare(type, name)};`);
    const name = `S${this.structs.length}`;
    this.structs.push(`struct ${name} { ${members.join(" ")} };`);
    return name;
  }
}

/** Sizes, alignments and offsets as the compiler has them. */
function measure(structs: readonly Struct[]): number[][] {
  const source = new Source();
  const lines = structs.flatMap((each) => {
    const name = source.define(each);
    const offsets = Object.keys(each.offsets).map(
      (field) => `(device uchar *)&((device ${name} *)out)->${field} - (device uchar *)out`,
    );
    return [`sizeof(${name})`, `alignof(${name})`, ...offsets].map((value) => `*next++ = uint(${value});`);
  });
  const label = `measure${Bun.hash(lines.join("")).toString(36)}`;
  device.registerSource(
    label,
    `#include <metal_stdlib>
using namespace metal;
${source.structs.join("\n")}
kernel void ${label}(device uint *out [[buffer(0)]]) {
device uint *next = out;
${lines.join("\n")}
}`,
  );
  using pipeline = device.pipeline(label);
  const counts = structs.map(({ offsets }) => 2 + Object.keys(offsets).length);
  using out = device.tensor("u32", [counts.reduce((sum, count) => sum + count, 0)]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: { 0: out }, grid: 1, threads: 1 });
  pass.commitAndWait();
  const values = [...out.view()];
  return counts.map((count) => values.splice(0, count));
}

const layoutOf = ({ size, alignment, offsets }: Struct) => [size, alignment, ...Object.values<number>(offsets)];

const names = [...types.keys()] as FieldType[];

/** Random structs, the same in each run: fields of every kind, arrays and structs in structs. */
function randomStructs(count: number): Struct[] {
  let seed = 1;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const made: Struct[] = [];
  const type = (): FieldType => {
    const kind = random(6);
    if (kind === 0 && made.length > 0) return made[random(made.length)] as Struct;
    if (kind === 1) return [type(), 1 + random(3)];
    return names[random(names.length)] as FieldType;
  };
  while (made.length < count) {
    const fields: Record<string, FieldType> = {};
    for (let i = 0; i <= random(5); i++) fields[`f${i}`] = type();
    const each = struct(fields as FieldTypes);
    if (each.size <= 1024) made.push(each);
  }
  return made;
}

describe("sizes and offsets are the compiler's", () => {
  test("of every scalar and vector", () => {
    expect(names.length).toBe(12 + 12 * 3 + 11 * 3);
    const structs = names.map((type) => struct({ before: "u8", field: type, after: "u8" }));
    expect(structs.map(layoutOf)).toEqual(measure(structs));
  });

  test("of structs in structs, and arrays", () => {
    const structs = randomStructs(60);
    expect(structs.map(layoutOf)).toEqual(measure(structs));
  });

  test("of the example", () => {
    const params = struct({ n: "u32", scale: "f32", origin: "float3", weights: ["f16", 4] });
    expect(layoutOf(params)).toEqual([48, 16, 0, 4, 16, 32]);
  });
});

test("a kernel reads what is packed, field by field", () => {
  const inner = struct({ flag: "bool", pair: "packed_float3", big: "i64" });
  const params = struct({
    count: "u8",
    origin: "float3",
    halves: ["half4", 2],
    rough: "bf16",
    inner: [inner, 2],
    small: "char2",
  });
  const bytes = params.pack({
    count: 200,
    origin: [1.5, -2, 3],
    halves: [new Float32Array([1, 2, 3, 4]), [5, 6, 7, 8.5]],
    rough: 1.0078125,
    inner: [
      { flag: true, pair: [0.25, 0.5, 0.75], big: -(2n ** 40n) },
      { flag: false, pair: [9, 10, 11], big: 7 },
    ],
    small: [-1, 5],
  });
  const source = new Source();
  const name = source.define(params);
  const reads = [
    ..."p.count p.origin.x p.origin.y p.origin.z p.halves[0].w p.halves[1].w p.rough p.small.x p.small.y".split(" "),
    ...[0, 1].flatMap((i) => [`p.inner[${i}].flag`, `p.inner[${i}].pair[2]`, `p.inner[${i}].big >> 38`]),
  ];
  device.registerSource(
    "packed",
    `#include <metal_stdlib>
using namespace metal;
${source.structs.join("\n")}
kernel void packed(device float *out [[buffer(0)]], constant ${name} &p [[buffer(1)]]) {
${reads.map((read, i) => `out[${i}] = float(${read});`).join("\n")}
}`,
  );
  using pipeline = device.pipeline("packed");
  using out = device.tensor("f32", [reads.length]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: { 0: out }, bytes: { 1: bytes }, grid: 1, threads: 1 });
  pass.commitAndWait();
  expect([...out.view()]).toEqual([200, 1.5, -2, 3, 4, 8.5, 1.0078125, -1, 5, 1, 0.75, -4, 0, 11, 0]);
});

test.each([
  ["u8", Uint8Array, 0, 0xff],
  ["i8", Int8Array, -0x80, 0x7f],
  ["u16", Uint16Array, 0, 0xffff],
  ["i16", Int16Array, -0x8000, 0x7fff],
  ["u32", Uint32Array, 0, 0xffff_ffff],
  ["i32", Int32Array, -0x8000_0000, 0x7fff_ffff],
  ["u64", BigUint64Array, 0n, 2n ** 64n - 1n],
  ["i64", BigInt64Array, -(2n ** 63n), 2n ** 63n - 1n],
] as const)("%s takes both ends of its range and no more, in the bytes of a typed array", (type, Values, min, max) => {
  const each = struct({ x: type });
  const isBig = typeof min === "bigint";
  const pack = (x: number | bigint) => each.pack({ x } as never);
  for (const value of [min, max, isBig ? 0x1234n : 0x12]) {
    const expected = Values.of(value as never);
    expect(pack(value)).toEqual(new Uint8Array(expected.buffer));
  }
  for (const value of isBig ? [min - 1n, (max as bigint) + 1n] : [min - 1, (max as number) + 1]) {
    const { code, argument } = thrownBy(() => pack(value));
    expect([code, argument]).toEqual(["invalid-argument", "x"]);
  }
});

test("a list of values packs an array of structs, each in its stride", () => {
  const each = struct({ a: "float3", b: "u16" });
  expect(each.size).toBe(32);
  const bytes = each.pack([
    { a: [1, 2, 3], b: 4 },
    { a: [5, 6, 7], b: 8 },
  ]);
  expect(bytes.length).toBe(64);
  expect(new DataView(bytes.buffer).getUint16(32 + 16, true)).toBe(8);
});

describe("refused", () => {
  const params = struct({ n: "u32", origin: "float3", big: "u64", parts: [struct({ x: "f16" }), 2] });
  const good = { n: 1, origin: [0, 0, 0], big: 1n, parts: [{ x: 1 }, { x: 2 }] } as const;
  const cases: [change: Record<string, unknown>, argument: string, message: RegExp][] = [
    [{ n: -1 }, "n", /expected an integer from 0 to 4294967295, got -1/],
    [{ n: undefined }, "n", /got undefined/],
    [{ n: 1n }, "n", /got 1n/],
    [{ origin: [1, 2] }, "origin", /expected 3 values, got 2/],
    [{ origin: 1 }, "origin", /expected an array of 3, got 1/],
    [{ origin: [1, 2, "x"] }, "origin[2]", /expected a number, got "x"/],
    [{ big: 2 ** 60 }, "big", /as a bigint beyond 2\^53/],
    [{ big: 2n ** 64n }, "big", /from 0 to 18446744073709551615/],
    [{ parts: [{ x: 1 }, { y: 2 }] }, "parts[1].y", /takes nothing of that name/],
    [{ parts: [{ x: 1 }, 3] }, "parts[1]", /expected an object, got 3/],
    [{ orgin: [0, 0, 0] }, "orgin", /did you mean origin\?/],
  ];
  test.each(cases)("values %p", (change, argument, message) => {
    const error = thrownBy(() => params.pack({ ...good, ...change } as never));
    expect([error.code, error.argument]).toEqual(["invalid-argument", argument]);
    expect(error.message).toMatch(message);
  });

  const layouts: [fields: unknown, message: RegExp][] = [
    [{}, /at least one field/],
    [{ x: "f23" }, /fields\.x: no type "f23".*there are bool, u8/],
    [{ x: ["f32", 0] }, /an array is \[type, length\]/],
    [{ x: { size: 4 } }, /expected the name of a type, a struct or \[type, length\], got an object/],
    [{ 0: "f32", a: "f32" }, /does not begin with a digit/],
    [{ x: ["f32", 1e300] }, /fields\.x: ends at 4e\+300 bytes.*4294967296/],
    [{ x: ["f32", 2 ** 29], y: [["u8", 2 ** 30], 2], z: "u8" }, /fields\.z: ends at 4294967297 bytes/],
    [undefined, /fields: expected an object/],
  ];
  test("more than a buffer holds", () => {
    const half = struct({ x: ["f32", 2 ** 29] });
    const { code, argument, message } = thrownBy(() => half.pack([1, 2, 3] as never));
    expect([code, argument]).toEqual(["invalid-argument", "values"]);
    expect(message).toContain(`${3 * 2 ** 31}`);
  });

  test.each(layouts)("fields %p", (fields, message) => {
    expect(thrownBy(() => struct(fields as never)).message).toMatch(message);
  });
});
