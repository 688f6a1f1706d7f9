/** The shortest useful program: opens a device, copies a row, reads it. */
import { Device, kvCacheCopy } from "metal-attention";

using device = Device.open();
using src = device.tensor("f32", [1, 4]).set([1, 2, 3, 4]);
using cache = device.tensor("f32", [8, 4]);
using pass = device.pass();
kvCacheCopy(pass, { src, cache, writePos: 5 });
pass.commitAndWait();
if (cache.toFloat32Array()[23] !== 4) throw new Error("the row did not arrive");
