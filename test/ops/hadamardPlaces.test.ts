/** hadamardQuantizeKvSeq with positions in device memory and with pages: the bytes of the same tokens written one by one. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, hadamardQuantizeKvSeq, kvCacheBytes, type Tensor } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const heads = 3;
const pageTokens = 4;

interface Case {
  readonly name: string;
  readonly headDim: number;
  readonly bits: 3 | 4 | 8;
  readonly isSliding?: boolean;
  /** Pages of each sequence; a cache of 8 slots of its own without. */
  readonly table?: readonly (readonly number[])[];
  /** Of each sequence, or one list for both. */
  readonly positions: readonly (readonly number[])[];
}

const cases: readonly Case[] = [
  { name: "positions of both sequences", headDim: 64, bits: 8, positions: [[5, 0, 7]] },
  {
    name: "positions of each, some left out",
    headDim: 64,
    bits: 4,
    positions: [
      [7, 3, 8],
      [2, -7, 2 ** 31 - 1],
    ],
  },
  {
    name: "a ring",
    headDim: 128,
    bits: 4,
    isSliding: true,
    positions: [
      [15, 8, 30],
      [-1, 2 ** 31 - 1, 1],
    ],
  },
  {
    name: "pages, one of which there is not",
    headDim: 64,
    bits: 3,
    table: [
      [5, 0],
      [2, 6],
    ],
    positions: [
      [0, 3, 4],
      [1, 5, 2],
    ],
  },
  {
    name: "a ring of pages",
    headDim: 512,
    bits: 8,
    isSliding: true,
    table: [
      [1, 3],
      [-1, 4],
    ],
    positions: [
      [9, 4, 2],
      [7, 0, 12],
    ],
  },
  {
    name: "a head size without a kernel of its own",
    headDim: 32,
    bits: 4,
    table: [
      [1, 0],
      [3, 2],
    ],
    positions: [[-1, 6, 2]],
  },
];

describe("hadamardQuantizeKvSeq by places in device memory", () => {
  for (const { name, headDim, bits, isSliding = false, table, positions } of cases) {
    test(name, () => {
      const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: heads, capacity: 8, bits });
      const slots = table === undefined ? 8 : pageTokens;
      const planes = table === undefined ? 2 : 6;
      const cache = () => ({
        packed: device
          .tensor("u8", [planes, heads, slots, bytesPerRow])
          .set(new Uint8Array(planes * heads * slots * bytesPerRow).fill(0xa5)),
        norms: device
          .tensor("f32", [planes, heads, slots, normsPerPos])
          .set(new Float32Array(planes * heads * slots * normsPerPos).fill(7)),
      });
      const source = (seed: number) => {
        const draw = normalDraws(seed);
        return device
          .tensor("f32", [2, 3, heads, headDim])
          .set(Float32Array.from({ length: 6 * heads * headDim }, draw));
      };
      const [srcK, srcV] = [source(1), source(2)];
      const [got, gotV, expected, expectedV] = [cache(), cache(), cache(), cache()];
      using pass = device.pass();
      const places = device.tensor("i32", positions.length === 1 ? [3] : [2, 3]).set(Int32Array.from(positions.flat()));
      hadamardQuantizeKvSeq(pass, {
        ...{ k: { src: srcK, ...got }, v: { src: srcV, ...gotV }, bits, isSliding, positions: places },
        ...(table !== undefined && { blockTable: device.tensor("i32", [2, 2]).set(Int32Array.from(table.flat())) }),
      });
      let written = 0;
      for (const sequence of [0, 1]) {
        for (let token = 0; token < 3; token++) {
          const position = positions[positions.length === 1 ? 0 : sequence]?.[token] as number;
          if (position < 0 || (!isSliding && position >= 8)) continue;
          const slot = position % 8;
          const plane = table === undefined ? sequence : (table[sequence]?.[Math.floor(slot / pageTokens)] as number);
          if (plane < 0 || plane >= planes) continue;
          written++;
          for (const [src, to] of [
            [srcK, expected],
            [srcV, expectedV],
          ] as const) {
            hadamardQuantizeKvSeq(pass, {
              src: row(src, sequence, token),
              packed: to.packed.slice(plane, plane + 1),
              norms: to.norms.slice(plane, plane + 1),
              ...{ bits, writePosStart: slot % slots },
            });
          }
        }
      }
      pass.commitAndWait();
      expect(written).toBeGreaterThan(2);
      for (const [a, b] of [
        [got, expected],
        [gotV, expectedV],
      ] as const) {
        expect(a.packed.toFloat32Array()).toEqual(b.packed.toFloat32Array());
        expect(a.norms.toFloat32Array()).toEqual(b.norms.toFloat32Array());
      }
    });
  }

  test("what is refused", () => {
    const src = device.tensor("f32", [3, heads, 64]);
    const packed = device.tensor("u8", [6, heads, pageTokens, 64]);
    const norms = device.tensor("f32", [6, heads, pageTokens, 1]);
    const i32 = (...shape: number[]) => device.tensor("i32", shape);
    const refuse = (
      change: object,
      code: "invalid-argument" | "unsupported" | "overflow",
      ...rest: (string | number)[]
    ) => {
      using pass = device.pass();
      const [argument, ...parts] = rest;
      const given = { src, packed, norms, bits: 8, positions: i32(3), blockTable: i32(2), ...change };
      expectRefusal(() => hadamardQuantizeKvSeq(pass, given as never), code, argument as string, ...parts);
      expect(pass.describe()).toEqual([]);
    };
    refuse({ writePosStart: 1 }, "invalid-argument", "writePosStart", "positions");
    refuse({ positions: undefined }, "invalid-argument", "writePosStart", "undefined");
    refuse({ positions: i32(2) }, "invalid-argument", "positions", "[3]", "[2]");
    refuse({ positions: device.tensor("f32", [3]) }, "unsupported", "positions", "f32", "i32");
    refuse({ blockTable: i32(2, 2) }, "invalid-argument", "blockTable", "B is 2", 1);
    refuse({ blockTable: device.tensor("f32", [2]) }, "unsupported", "blockTable", "f32", "i32");
    refuse({ packed: device.tensor("u8", [heads, 8, 64]) }, "invalid-argument", "packed", "pages");
    refuse({ norms: device.tensor("f32", [5, heads, pageTokens, 1]) }, "invalid-argument", "norms", "nPages", 5, 6);
    const fewer = { packed: device.tensor("u8", [5, heads, pageTokens, 64]), norms: norms.slice(0, 5) };
    const both = { src: undefined, packed: undefined, norms: undefined };
    const [k, v] = [
      { src, packed, norms },
      { src, ...fewer },
    ];
    refuse({ ...both, k, v }, "invalid-argument", "v.packed", "nPages", 5, 6);
    refuse({ ...both, k: v, v: k }, "invalid-argument", "v.packed", "nPages", 6, 5);
    refuse({ positions: undefined, writePosStart: 6 }, "overflow", "writePosStart", 6, 3, 8);
    const none = { packed: packed.slice(0, 0), norms: norms.slice(0, 0) };
    refuse(none, "invalid-argument", "packed", "pool", 0, 1);
  });
});

/** One token of a source [B, tokens, heads, D], as [1, 1, heads, D]. */
function row(src: Tensor<"f32">, sequence: number, token: number): Tensor<"f32"> {
  const [, tokens, of, headDim] = src.shape as readonly [number, number, number, number];
  const at = sequence * tokens + token;
  return src
    .reshape([2 * tokens, of, headDim])
    .slice(at, at + 1)
    .reshape([1, 1, of, headDim]);
}
