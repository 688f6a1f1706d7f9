import { describe, expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { type DecodeDType, type DType, mergeAttention, type Tensor } from "../../src/index.ts";
import { maxError, referenceMerge } from "../../src/reference/index.ts";
import { testTable } from "../helpers/table.ts";
import { refused, untyped, WatchedTensors } from "../helpers/watched.ts";

const scene = new WatchedTensors();
const { device } = scene;
const dtypes: readonly DecodeDType[] = ["f32", "f16", "bf16"];
/** Half a unit in the last place of a result, relative. */
const rounding = { f32: 0, f16: 2 ** -11, bf16: 2 ** -8 };

describe("against the oracle", () => {
  /** Parts with logarithms from about -20 to 20; of each, another row has seen nothing and holds NaN. */
  function parts(count: number, dtype: DecodeDType, rows: number, size: number) {
    return Array.from({ length: count }, (_, i) => {
      const lse = normalArray(rows, 6, 2 * i + 1);
      const out = normalArray(rows * size, 1, 2 * i + 2);
      const unseen = i % (rows + 1);
      if (unseen < rows) {
        lse[unseen] = Number.NEGATIVE_INFINITY;
        out.fill(Number.NaN, unseen * size, (unseen + 1) * size);
      }
      return { out: device.tensor(dtype, [rows, size]).set(out), lse: device.tensor("f32", [rows]).set(lse) };
    });
  }

  const sizes = [
    { count: 1, rows: 3, size: 5 },
    { count: 2, rows: 1, size: 64 },
    { count: 3, rows: 7, size: 257 },
    { count: 8, rows: 40, size: 96 },
  ];
  const joined = dtypes.flatMap((from) =>
    dtypes.flatMap((to) =>
      sizes.map((entry) => ({
        ...entry,
        from,
        to,
        name: `${entry.count} parts of ${from} [${entry.rows}, ${entry.size}] to ${to}`,
      })),
    ),
  );
  testTable("joined", joined, ({ from, to, count, rows, size }) => {
    const given = parts(count, from, rows, size);
    const [out, lse] = [device.tensor(to, [rows, size]), device.tensor("f32", [rows])];
    using pass = device.pass();
    mergeAttention(pass, { parts: given, out, lse });
    pass.commitAndWait();
    const numbers = given.map((part) => ({ out: part.out.toFloat32Array(), lse: part.lse.view() }));
    const expected = referenceMerge(numbers, rows, size);
    const largest = expected.out.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(maxError(out.toFloat32Array(), expected.out)).toBeLessThanOrEqual((1e-6 + rounding[to]) * largest);
    expect(maxError(lse.view(), expected.lse)).toBeLessThanOrEqual(1e-5);
  });

  test("a row that no part has seen is 0, its logarithm -infinity", () => {
    const [out, lse] = [device.tensor("f32", [3, 4]), device.tensor("f32", [3])];
    using pass = device.pass();
    mergeAttention(pass, { parts: parts(1, "f32", 3, 4), out, lse });
    pass.commitAndWait();
    expect([...out.view().subarray(0, 4)]).toEqual([0, 0, 0, 0]);
    expect(lse.view()[0]).toBe(Number.NEGATIVE_INFINITY);
  });
});

const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);
const [merged, mergedLse] = [tensor("f32", 6, 8), tensor("f32", 6)];
const part = () => ({ out: tensor("f16", 6, 8), lse: tensor("f32", 6) });
const valid = { parts: [part(), part()], out: merged, lse: mergedLse };

const cases = [
  refused("no part", { parts: [] }, "invalid-argument", "parts", 0, 8),
  refused("9 parts", { parts: Array.from({ length: 9 }, part) }, "invalid-argument", "parts", 9, 8),
  refused("no list", { parts: part() }, "invalid-argument", "parts"),
  refused(
    "a part of another shape",
    { parts: [part(), { ...part(), out: tensor("f16", 6, 9) }] },
    "invalid-argument",
    "parts.1.out",
    9,
    8,
  ),
  refused(
    "logarithms of another shape",
    { parts: [{ ...part(), lse: tensor("f32", 5) }] },
    "invalid-argument",
    "parts.0.lse",
    5,
    6,
  ),
  refused(
    "parts in two types",
    { parts: [part(), { ...part(), out: tensor("bf16", 6, 8) }] },
    "unsupported",
    "parts.1.out",
    "bf16",
    "f16",
  ),
  refused("logarithms in f16", { parts: [{ ...part(), lse: tensor("f16", 6) }] }, "unsupported", "parts.0.lse", "f16"),
  refused(
    "out of another shape",
    { out: tensor("f32", 6, 9), lse: undefined },
    "invalid-argument",
    "parts.0.out",
    9,
    8,
  ),
  refused(
    "out without rows",
    { out: tensor("f32", 8), lse: undefined },
    "invalid-argument",
    "out",
    "[..., rows, D]",
    "[8]",
  ),
  refused("out of another type", { out: tensor("u8", 6, 8) }, "unsupported", "out", "u8"),
  refused("lse of another type", { lse: tensor("f16", 6) }, "unsupported", "lse", "f16", "f32"),
  refused("lse of another shape", { lse: tensor("f32", 5) }, "invalid-argument", "lse", 5, 6),
  refused("lse over out", { lse: merged.reshape([48]).slice(0, 6) }, "invalid-argument", "lse", "overlap", "out"),
  refused("out over a part", { parts: [{ out: merged, lse: tensor("f32", 6) }] }, "invalid-argument", "out", "overlap"),
  refused("lse over a part's", { parts: [{ ...part(), lse: mergedLse }] }, "invalid-argument", "lse", "overlap"),
  refused("a misspelt name of a part", { parts: [{ ...part(), lsf: 1 }] }, "invalid-argument", "parts.0.lsf", "lse"),
];

testTable("refused", cases, (refusal) => {
  scene.checkRefusal(untyped(mergeAttention), valid, [merged, mergedLse], refusal);
});
