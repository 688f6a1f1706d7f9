/**
 * Asks for buffers where the system has no address space left, by a limit on
 * this process, and again without the limit. Prints the statuses and messages
 * as JSON.
 */
import { dlopen, FFIType } from "bun:ffi";
import { readFileSync } from "node:fs";
import { Block } from "../../src/ffi/block.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { nativeError } from "../../src/ffi/status.ts";

const addressSpace = 9; // RLIMIT_AS of Linux
const length = 1n << 30n;
const room = 64 << 20;

const libc = dlopen("libc.so.6", {
  getrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
  setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
}).symbols;

/** Sets the limit of this process in bytes, and gives the one before. */
function limit(bytes: number): number {
  const pair = new Block(16); // soft, hard
  if (libc.getrlimit(addressSpace, pair.bytes) !== 0) throw new Error("getrlimit failed");
  const words = new BigUint64Array(pair.buffer);
  const before = words[0] ?? 0n;
  words[0] = bytes === Infinity ? 2n ** 64n - 1n : BigInt(bytes);
  if (libc.setrlimit(addressSpace, pair.bytes) !== 0) throw new Error("setrlimit failed");
  return Number(before);
}

function addressSpaceInUse(): number {
  const pages = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(pages) * 1024;
}

const native = loadLibrary();
const out = new Block(16);
if (native.ma_device_open(out.bytes) !== 0) throw new Error("no device");
const device = out.u32[0] ?? 0;
const create = () => native.ma_buffer_create(device, length, 0, out.bytes, out.bytes.subarray(8));

out.bytes.fill(0xa5);
limit(addressSpaceInUse() + room);
const refused = create();
limit(Infinity);
const { message } = nativeError(native, refused);
const untouched = out.bytes.every((byte) => byte === 0xa5);
const accepted = create();
const released = native.ma_buffer_release(out.u32[0] ?? 0);
console.log(JSON.stringify({ refused, message, untouched, accepted, released }));
