/** `bun test/cache/ring.ts [TOKENS]`: appends so many tokens, a million unless given, to a ring and says what memory did. */
import { Device, KvCache } from "../../src/index.ts";

const [tokens = 1_000_000] = process.argv.slice(2).map(Number);
const count = 500;
using device = Device.open();
using cache = new KvCache(device, { layers: 1, nKvHeads: 1, headDim: 64, capacity: 1028, window: 512, keep: 4 });
using k = device.tensor("f32", [count, 1, 64]).set(Float32Array.from({ length: count * 64 }, (_, i) => Math.sin(i)));
using q = device.tensor("f32", [1, 2, 64]).set(Float32Array.from({ length: 128 }, (_, i) => Math.cos(i)));
using out = device.tensor("f32", [1, 2, 64]);

/** Appends in parts, and after each a token that attends. */
function append(from: number, to: number): void {
  for (let at = from; at < to; at += count + 1) {
    using pass = device.pass();
    cache.append(pass, 0, { k, v: k });
    pass.commitAndWait();
    cache.advance();
    using last = k.slice(0, 1);
    using next = device.pass();
    cache.append(next, 0, { k: last, v: last });
    cache.attend(next, 0, { q, out });
    next.commitAndWait();
    cache.advance();
  }
}

append(0, 20 * count);
const [bytes, allocated, resident] = [cache.bytes, device.info.currentAllocatedSize, process.memoryUsage.rss()];
append(cache.length, tokens);
const grown = process.memoryUsage.rss() - resident;
console.log(`${cache.length} tokens, ${cache.bytes} bytes, the process ${Math.round(grown / 2 ** 20)} MiB more`);
if (cache.bytes !== bytes || device.info.currentAllocatedSize !== allocated || grown > 100 * 2 ** 20) {
  console.error(`not flat: ${bytes} bytes before, the device ${allocated} and ${device.info.currentAllocatedSize}`);
  process.exit(1);
}
