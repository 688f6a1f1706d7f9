/** Copies two rows on a device of its own and prints the outcome as JSON. */
import { Device, kvCacheCopy, MetalAttentionError } from "../../src/index.ts";

function outcome(): object {
  try {
    using device = Device.open();
    using src = device.tensor("f32", [2, 4]);
    using cache = device.tensor("f32", [3, 4]);
    src.set([1, 2, 3, 4, 5, 6, 7, 8]);
    using pass = device.pass();
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    pass.commitAndWait();
    return { values: Array.from(cache.toFloat32Array()) };
  } catch (error) {
    if (!(error instanceof MetalAttentionError)) throw error;
    return { code: error.code, message: error.message };
  }
}

console.log(JSON.stringify(outcome()));
