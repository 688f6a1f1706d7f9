import { afterAll, expect, test } from "bun:test";
import { Device, type FlashAttnDecodeArgs, flashAttnDecode } from "../../src/index.ts";

const device = Device.open();
afterAll(() => device.dispose());

const tensor = (seed: number) =>
  device.tensor("f16", [1, 1, 4, 64]).set(Float32Array.from({ length: 256 }, (_, i) => ((i * seed * 37) % 17) / 8 - 1));
const [q, k, v, otherK, otherV] = [tensor(1), tensor(2), tensor(3), tensor(4), tensor(5)];
const out = device.tensor("f16", [1, 1, 4, 64]);
const otherOut = device.tensor("f16", [1, 1, 4, 64]);

function run(args: FlashAttnDecodeArgs): Uint8Array {
  using pass = device.pass();
  flashAttnDecode(pass, args);
  pass.commitAndWait();
  return out.bytes.slice();
}

const plain: FlashAttnDecodeArgs = { q, k, v, out, seqLen: 4, isSliding: false, scale: 0.125 };

test.each(["v", "out", "seqLen", "isSliding", "scale"] as const)(
  "a getter of %s that attends over another cache leaves both calls whole",
  (name) => {
    const expected = run(plain);
    const other = run({ ...plain, k: otherK, v: otherV });
    expect(other).not.toEqual(expected);
    let inner: Uint8Array | undefined;
    const args = Object.defineProperty({ ...plain }, name, {
      enumerable: true,
      get() {
        using pass = device.pass();
        flashAttnDecode(pass, { ...plain, k: otherK, v: otherV, out: otherOut });
        pass.commitAndWait();
        inner = otherOut.bytes.slice();
        return plain[name];
      },
    });
    expect(run(args)).toEqual(expected);
    expect(inner).toEqual(other);
  },
);
