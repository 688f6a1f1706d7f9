import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { Device, KvCache } from "../../src/index.ts";

test("a pool keeps no more objects the more of its pages have been written", async () => {
  const [layers, count] = [16, 200];
  using device = Device.open();
  using cache = new KvCache(device, {
    layers,
    nKvHeads: 1,
    headDim: 64,
    capacity: count,
    k: { bits: 8 },
    v: "f16",
    pages: { tokens: 1, count },
  });
  using rows = device.tensor("f16", [1, 1, 64]);
  const write = async (pages: number) => {
    for (let i = 0; i < pages; i++) {
      using pass = device.pass();
      for (let layer = 0; layer < layers; layer++) cache.append(pass, layer, { k: rows, v: rows });
      await pass.commit();
      cache.advance(1);
    }
    Bun.gc(true);
    return heapStats().objectCount;
  };
  const before = await write(40);
  const after = await write(160);
  // A view of a page is three tensors; 160 pages of 16 layers would be 7,680.
  expect(after - before).toBeLessThan(2000);
});
