import { dlopen, FFIType, ptr } from "bun:ffi";

const isDarwin = process.platform === "darwin";
const { clock_gettime } = dlopen(isDarwin ? "libSystem.B.dylib" : "libc.so.6", {
  clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
}).symbols;

/** CLOCK_THREAD_CPUTIME_ID */
const clock = isDarwin ? 16 : 3;
const time = new BigInt64Array(new ArrayBuffer(16));
const address = ptr(time);

/** ns for which this thread has had a processor: by the clock, others may have had it meanwhile. */
export function threadNanoseconds(): number {
  clock_gettime(clock, address);
  return Number(time[0]) * 1e9 + Number(time[1]);
}
