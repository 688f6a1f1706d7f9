/** Integer functions on every integer type, scalar and vector, against exact integers. */
import { type Case, type Element, languageSuite, type Values } from "./harness.ts";

interface IntegerType {
  readonly name: Element;
  readonly bits: number;
  readonly signed: boolean;
}
const types: readonly IntegerType[] = [
  { name: "char", bits: 8, signed: true },
  { name: "uchar", bits: 8, signed: false },
  { name: "short", bits: 16, signed: true },
  { name: "ushort", bits: 16, signed: false },
  { name: "int", bits: 32, signed: true },
  { name: "uint", bits: 32, signed: false },
  { name: "long", bits: 64, signed: true },
  { name: "ulong", bits: 64, signed: false },
];

const unsignedName = { char: "uchar", short: "ushort", int: "uint", long: "ulong" } as const;
const unsigned = (type: IntegerType): Element =>
  type.signed ? unsignedName[type.name as keyof typeof unsignedName] : type.name;
const wrap = ({ bits, signed }: IntegerType, x: bigint): bigint =>
  signed ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x);
const values = (type: IntegerType, list: readonly bigint[]): Values =>
  list.map((x) => (type.bits === 64 ? wrap(type, x) : Number(wrap(type, x))));
const limits = ({ bits, signed }: IntegerType): { readonly min: bigint; readonly max: bigint } => ({
  min: signed ? -(2n ** BigInt(bits - 1)) : 0n,
  max: 2n ** BigInt(signed ? bits - 1 : bits) - 1n,
});
const saturated = (type: IntegerType, x: bigint): bigint => {
  const { min, max } = limits(type);
  return x < min ? min : x > max ? max : x;
};
/** The bits of `x`, the lowest first. */
const bitList = ({ bits }: IntegerType, x: bigint): number[] =>
  Array.from({ length: bits }, (_, k) => Number((BigInt.asUintN(bits, x) >> BigInt(k)) & 1n));
const fromBits = (list: readonly number[]): bigint =>
  list.reduce((sum, bit, k) => sum + BigInt(bit) * 2n ** BigInt(k), 0n);

/** Operands with every kind of boundary. */
function operands(type: IntegerType): bigint[] {
  const { min, max } = limits(type);
  return [0n, 1n, max, min, max - 1n, min + 1n, 5n, max / 3n, 0x5an, min + max / 7n, 100n, max >> 1n].map((x) =>
    wrap(type, x),
  );
}

type Unary = readonly [name: string, of: (type: IntegerType, x: bigint) => bigint];
const unary: readonly Unary[] = [
  ["popcount", (type, x) => BigInt(bitList(type, x).filter((bit) => bit === 1).length)],
  ["clz", (type, x) => BigInt(type.bits - 1 - bitList(type, x).lastIndexOf(1))],
  [
    "ctz",
    (type, x) => {
      const first = bitList(type, x).indexOf(1);
      return BigInt(first < 0 ? type.bits : first);
    },
  ],
  ["reverse_bits", (type, x) => wrap(type, fromBits(bitList(type, x).reverse()))],
  ["abs", (type, x) => wrap(type, x < 0n ? -x : x)],
];

type Binary = readonly [name: string, of: (type: IntegerType, x: bigint, y: bigint) => bigint];
const binary: readonly Binary[] = [
  ["min", (_, x, y) => (x < y ? x : y)],
  ["max", (_, x, y) => (x > y ? x : y)],
  ["mulhi", (type, x, y) => wrap(type, (x * y) >> BigInt(type.bits))],
  ["hadd", (type, x, y) => wrap(type, (x + y) >> 1n)],
  ["rhadd", (type, x, y) => wrap(type, (x + y + 1n) >> 1n)],
  ["addsat", (type, x, y) => saturated(type, x + y)],
  ["subsat", (type, x, y) => saturated(type, x - y)],
  [
    "rotate",
    (type, x, y) => {
      const by = BigInt.asUintN(type.bits, y) % BigInt(type.bits);
      const word = BigInt.asUintN(type.bits, x);
      return wrap(type, (word << by) | (word >> (BigInt(type.bits) - by)));
    },
  ],
];
type Ternary = readonly [name: string, of: (type: IntegerType, x: bigint, y: bigint, z: bigint) => bigint];
const smallest = (list: bigint[]): bigint => list.reduce((x, y) => (x < y ? x : y));
const largest = (list: bigint[]): bigint => list.reduce((x, y) => (x > y ? x : y));
const ternary: readonly Ternary[] = [
  ["madhi", (type, x, y, z) => wrap(type, ((x * y) >> BigInt(type.bits)) + z)],
  ["madsat", (type, x, y, z) => saturated(type, x * y + z)],
  ["min3", (_, x, y, z) => smallest([x, y, z])],
  ["max3", (_, x, y, z) => largest([x, y, z])],
  ["median3", (_, x, y, z) => [x, y, z].sort((p, q) => (p < q ? -1 : p > q ? 1 : 0))[1] ?? 0n],
];

const cases: Case[] = [];
for (const type of types) {
  const t = type.name;
  const list = operands(type);
  const left = list.flatMap((x) => list.map(() => x));
  const right = list.flatMap(() => list);
  const third = left.map((_, k) => list[(k * 5) % list.length] ?? 0n);
  const { max } = limits(type);
  for (const [name, of] of unary) {
    cases.push(
      {
        name: `${name}(${t})`,
        code: `out[i] = ${name}(a[i]);`,
        out: t,
        inputs: [{ type: t, values: values(type, list) }],
        expected: values(
          type,
          list.map((x) => of(type, x)),
        ),
      },
      {
        name: `${name}(${t}4)`,
        code: `const ${t}4 r = ${name}(${t}4(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3])); for (uint k = 0; k < 4; ++k) { out[4 * i + k] = r[k]; }`,
        out: t,
        threads: list.length / 4,
        inputs: [{ type: t, values: values(type, list) }],
        expected: values(
          type,
          list.map((x) => of(type, x)),
        ),
      },
    );
  }
  for (const [name, of] of binary) {
    cases.push({
      name: `${name}(${t}, ${t}) and of ${t}2`,
      code: `const ${t} r = ${name}(a[i], b[i]); const ${t}2 v = ${name}(${t}2(a[i], b[i]), ${t}2(b[i], b[i]));
        out[2 * i] = r; out[2 * i + 1] = v.x;`,
      out: t,
      threads: left.length,
      inputs: [
        { type: t, values: values(type, left) },
        { type: t, values: values(type, right) },
      ],
      expected: values(
        type,
        left.flatMap((x, k) => [of(type, x, right[k] ?? 0n), of(type, x, right[k] ?? 0n)]),
      ),
    });
  }
  for (const [name, of] of ternary) {
    cases.push({
      name: `${name}(${t}, ${t}, ${t}) and of ${t}3`,
      code: `const ${t} r = ${name}(a[i], b[i], c[i]); const ${t}3 v = ${name}(${t}3(a[i]), ${t}3(b[i]), ${t}3(c[i]));
        out[2 * i] = r; out[2 * i + 1] = v.z;`,
      out: t,
      threads: left.length,
      inputs: [
        { type: t, values: values(type, left) },
        { type: t, values: values(type, right) },
        { type: t, values: values(type, third) },
      ],
      expected: values(
        type,
        left.flatMap((x, k) => {
          const r = of(type, x, right[k] ?? 0n, third[k] ?? 0n);
          return [r, r];
        }),
      ),
    });
  }
  const difference = left.map((x, k) => {
    const d = x - (right[k] ?? 0n);
    return d < 0n ? -d : d;
  });
  const half = BigInt(type.bits / 2);
  cases.push(
    {
      name: `absdiff(${t}, ${t}) is ${unsigned(type)}, and of ${t}2`,
      code: `const ${unsigned(type)} r = absdiff(a[i], b[i]); const ${unsigned(type)}2 v = absdiff(${t}2(a[i]), ${t}2(b[i]));
        out[i] = r == v.y && is_same_v<decltype(absdiff(a[i], b[i])), ${unsigned(type)}> ? r : ${unsigned(type)}(77);`,
      out: unsigned(type),
      inputs: [
        { type: t, values: values(type, left) },
        { type: t, values: values(type, right) },
      ],
      expected: values({ ...type, signed: false }, difference),
    },
    {
      name: `clamp(${t}) and of ${t}4 with scalar bounds`,
      code: `const ${t} low = 5, high = 100; out[2 * i] = clamp(a[i], low, high); out[2 * i + 1] = clamp(${t}4(a[i]), ${t}4(5), ${t}4(100)).w;`,
      out: t,
      threads: list.length,
      inputs: [{ type: t, values: values(type, list) }],
      expected: values(
        type,
        list.flatMap((x) => {
          const r = x < 5n ? 5n : x > 100n ? 100n : x;
          return [r, r];
        }),
      ),
    },
    {
      name: `extract_bits(${t}): signs, 0 bits, all bits, and of ${t}2`,
      code: `out[5 * i] = extract_bits(a[i], 0, 0); out[5 * i + 1] = extract_bits(a[i], 2, 3); out[5 * i + 2] = extract_bits(a[i], ${half}, ${half});
        out[5 * i + 3] = extract_bits(a[i], 0, ${type.bits}); out[5 * i + 4] = extract_bits(${t}2(a[i]), 1u, 4u).y;`,
      out: t,
      threads: list.length,
      inputs: [{ type: t, values: values(type, list) }],
      expected: values(
        type,
        list.flatMap((x) =>
          [
            [0n, 0n],
            [2n, 3n],
            [half, half],
            [0n, BigInt(type.bits)],
            [1n, 4n],
          ].map(([offset = 0n, count = 0n]) => {
            const field = (BigInt.asUintN(type.bits, x) >> offset) & (2n ** count - 1n);
            return type.signed ? BigInt.asIntN(Number(count), field) : field;
          }),
        ),
      ),
    },
    {
      name: `insert_bits(${t}): 0 bits, the middle, all bits, and of ${t}2`,
      code: `out[4 * i] = insert_bits(a[i], ${t}(21), 3, 0); out[4 * i + 1] = insert_bits(a[i], ${t}(21), 2, 3);
        out[4 * i + 2] = insert_bits(a[i], ${t}(21), 0, ${type.bits}); out[4 * i + 3] = insert_bits(${t}2(a[i]), ${t}2(21), 1u, 4u).x;`,
      out: t,
      threads: list.length,
      inputs: [{ type: t, values: values(type, list) }],
      expected: values(
        type,
        list.flatMap((x) =>
          [
            [3n, 0n],
            [2n, 3n],
            [0n, BigInt(type.bits)],
            [1n, 4n],
          ].map(([offset = 0n, count = 0n]) => {
            const mask = (2n ** count - 1n) << offset;
            return (BigInt.asUintN(type.bits, x) & ~mask) | ((21n << offset) & mask);
          }),
        ),
      ),
    },
    {
      name: `the greatest ${t} plus one wraps in a vector`,
      code: `const ${unsigned(type)}2 v = ${unsigned(type)}2(${unsigned(type)}(a[0])) + ${unsigned(type)}2(1, 2); out[0] = ${t}(v.x); out[1] = ${t}(v.y);`,
      out: t,
      threads: 1,
      inputs: [{ type: t, values: values(type, [max]) }],
      expected: values(type, [max + 1n, max + 2n]),
    },
  );
}

/** The low 24 bits as a number of the type. */
const low24 = (type: IntegerType, x: bigint): bigint => (type.signed ? BigInt.asIntN(24, x) : BigInt.asUintN(24, x));
for (const type of types.filter(({ bits }) => bits === 32)) {
  const t = type.name;
  const factors = [0n, 1n, 1000n, 0x7fffffn, -1n, -0x800000n, 123456n].map((x) =>
    type.signed ? x : BigInt.asUintN(24, x),
  );
  cases.push({
    name: `mul24 and mad24 of ${t} and ${t}2`,
    code: `out[3 * i] = mul24(a[i], b[i]); out[3 * i + 1] = mad24(a[i], b[i], ${t}(77)); out[3 * i + 2] = mul24(${t}2(a[i]), ${t}2(b[i])).y;`,
    out: t,
    threads: factors.length ** 2,
    inputs: [
      {
        type: t,
        values: values(
          type,
          factors.flatMap((x) => factors.map(() => x)),
        ),
      },
      {
        type: t,
        values: values(
          type,
          factors.flatMap(() => factors),
        ),
      },
    ],
    expected: values(
      type,
      factors.flatMap((x) =>
        factors.flatMap((y) => {
          const product = low24(type, x) * low24(type, y);
          return [product, product + 77n, product];
        }),
      ),
    ),
  });
}

languageSuite("integers", "", cases);
