/**
 * Shows that the sanitizers of this run see faults: a library call that is
 * given less memory than it writes has to end its process with a report.
 * `with_address_sanitizer bun planted.ts`, by scripts/test --sanitize.
 */
import { dlopen, FFIType } from "bun:ffi";
import { readFileSync } from "node:fs";
import { Block } from "../../src/ffi/block.ts";
import { structSizes } from "../../src/ffi/generated/structs.ts";
import { libraryVariable, loadLibrary } from "../../src/ffi/library.ts";
import type { Pointer } from "../../src/ffi/memory.ts";
import { type Outcome, run } from "../helpers/run.ts";

const runtime = process.env["LD_PRELOAD"];
const library = process.env[libraryVariable];
if (runtime === undefined || library === undefined) throw new Error("run it by scripts/test --sanitize");

/** Asks for a device's description where there is room for `bytes`. */
function describeInto(bytes: number): void {
  // The allocator of the sanitizer, which knows the end of what it gave.
  const { malloc } = dlopen(runtime as string, { malloc: { args: [FFIType.u64], returns: FFIType.ptr } }).symbols;
  const native = loadLibrary();
  const out = new Block(8);
  native.ma_device_open(out.bytes);
  native.ma_device_info(out.u32[0] ?? 0, malloc(BigInt(bytes)) as Pointer);
  console.log("described");
}

const child = (bytes: number): Promise<Outcome> => run([process.execPath, import.meta.path, String(bytes)]);

const [bytes] = process.argv.slice(2);
if (bytes !== undefined) {
  describeInto(Number(bytes));
} else {
  const enough = await child(structSizes.MADeviceInfo);
  if (enough.output !== "described\n") throw new Error(`a correct call failed:\n${enough.errors}`);
  const short = await child(structSizes.MADeviceInfo - 1);
  if (!short.errors.includes("AddressSanitizer: heap-buffer-overflow")) {
    throw new Error(`one byte too few went unseen:\n${short.output}${short.errors}`);
  }
  if (!readFileSync(library).includes("__ubsan_handle_"))
    throw new Error(`${library} has no checks of undefined behaviour`);
  console.log("AddressSanitizer saw one byte too few; the library has checks of undefined behaviour.");
}
