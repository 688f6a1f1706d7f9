import { afterAll, expect } from "bun:test";
import { Device, dequantizeKv } from "../../src/index.ts";
import { at } from "../../src/reference/at.ts";
import { bytesPerRow, normsPerPos, referenceDequantizeKv } from "../../src/reference/index.ts";
import { codeFormats, formatName } from "../helpers/quantized.ts";
import { seededRandom } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";

// A slot that nothing was written to can hold anything. A byte has more values than 5 or 6 bits have codes.

const device = Device.open();
afterAll(() => device.dispose());

const [nKvHeads, capacity] = [2, 5];

testTable(
  "bytes that no encoding writes are read as codes",
  [64, 80, 128, 256, 512, 16, 1024].flatMap((headDim) =>
    codeFormats.map((format) => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
  ),
  ({ headDim, format }) => {
    const random = seededRandom(headDim + format.bits);
    using packed = device.tensor("u8", [nKvHeads, capacity, bytesPerRow(headDim, format)]);
    using norms = device.tensor("f32", [nKvHeads, capacity, normsPerPos(headDim)]);
    using out = device.tensor("f32", [nKvHeads, capacity, headDim]);
    for (const i of packed.view().keys()) packed.view()[i] = Math.floor(random() * 256);
    for (const i of norms.view().keys()) norms.view()[i] = 1 + random();
    using pass = device.pass();
    dequantizeKv(pass, { packed, norms, out, ...format });
    pass.commitAndWait();
    const stored = { packed: packed.view(), norms: norms.view() };
    const positions = { nKvHeads, headDim, capacity, posStart: 0, nTokens: capacity, isSliding: false };
    const expected = referenceDequantizeKv(stored, positions, format);
    const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - at(out.view(), i))), 0);
    expect(worst).toBeLessThan(2e-6 * expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  },
);
