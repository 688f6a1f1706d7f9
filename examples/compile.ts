/**
 * A program in one file, which needs neither node_modules nor clang: it carries the library and its kernels.
 *
 *     bun build --compile compile.ts --outfile program && ./program
 *
 * On a Mac the package is metal-attention-darwin-arm64. Kernels of your own need clang where it runs, on Linux.
 */
import { Device, kvCacheCopy } from "metal-attention";
import { files } from "metal-attention-linux-x64/files.js";

using device = Device.open(files);
using src = device.tensor("f32", [2, 4]).set([1, 2, 3, 4, 5, 6, 7, 8]);
using cache = device.tensor("f32", [4, 4]);

using pass = device.pass();
kvCacheCopy(pass, { src, cache, writePos: 1 }); // rows 1 and 2 of 4
await pass.commit();

const rows = [...cache.view()].join(" ");
console.log(`${device.info.name}: ${rows}`); // 0 0 0 0 1 2 3 4 5 6 7 8 0 0 0 0
if (rows !== "0 0 0 0 1 2 3 4 5 6 7 8 0 0 0 0") throw new Error("the rows are not where they belong");
