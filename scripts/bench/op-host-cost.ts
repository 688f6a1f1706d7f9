import { dlopen, FFIType, ptr } from "bun:ffi";
import { kvCacheCopy } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";

const ops = 4096;
const passes = 8;
const bareCalls = 4_000_000;
const rowSize = 1024;

/** `kvCacheCopy` of one row, encoded into a pass that is never run: check, pack, call, validate, encode. */
export const opHostCost: Benchmark = {
  name: "op-host-cost",
  unit: "ns",
  about: `kvCacheCopy of one row, ${ops.toLocaleString("en")} to a pass, encoded only`,
  baselineAbout: "a bare bun:ffi call with an integer and a pointer",
  target: { text: "at most 400 ns", met: (value) => value <= 400 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const src = device.tensor("f32", [1, rowSize]);
    const cache = device.tensor("f32", [ops, rowSize]);
    const libc = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
      // Reads nothing when the maximum length is 0.
      strnlen: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
    });
    const bytes = new Uint8Array(new ArrayBuffer(64));
    const address = ptr(bytes);
    const bare = libc.symbols.strnlen;
    return {
      measure() {
        let seconds = 0;
        for (let i = 0; i < passes; i++) {
          using pass = device.pass();
          seconds += secondsOf(() => {
            for (let writePos = 0; writePos < ops; writePos++) kvCacheCopy(pass, { src, cache, writePos });
          });
        }
        return (seconds * 1e9) / (ops * passes);
      },
      baseline() {
        const seconds = secondsOf(() => {
          for (let i = 0; i < bareCalls; i++) bare(address, 0);
        });
        return (seconds * 1e9) / bareCalls;
      },
      dispose() {
        device.dispose();
        libc.close();
      },
    };
  },
};
