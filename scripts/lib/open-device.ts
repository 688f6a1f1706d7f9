/** Devices opened with settings of the software device, which it reads from the environment. */
import { dlopen, FFIType } from "bun:ffi";
import { Device } from "../../src/index.ts";

// The library reads the C environment, which assignments to process.env do not reach.
const libc = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  setenv: { args: [FFIType.ptr, FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
  unsetenv: { args: [FFIType.ptr], returns: FFIType.i32 },
}).symbols;

export type Setting =
  | "SOFTMETAL_DEVICE"
  | "SOFTMETAL_THREADS"
  | "SOFTMETAL_TIME_LIMIT"
  | "SOFTMETAL_ORDER"
  | "SOFTMETAL_GUARD"
  | "SOFTMETAL_COUNTERS"
  | "SOFTMETAL_MATRIX_UNITS"
  | "SOFTMETAL_FAIL";

function set(setting: string, value: string | undefined): void {
  const name = Buffer.from(`${setting}\0`);
  const status = value === undefined ? libc.unsetenv(name) : libc.setenv(name, Buffer.from(`${value}\0`), 1);
  if (status !== 0) throw new Error(`cannot set ${setting}`);
}

export type Settings = Partial<Record<Setting, string>>;

/** A device that found `settings` in the environment when it was opened. An Apple GPU ignores them. */
export function openWith(settings: Settings): Device {
  const entries = Object.entries(settings);
  for (const [name, value] of entries) set(name, value);
  try {
    return Device.open();
  } finally {
    for (const [name] of entries) set(name, process.env[name]);
  }
}

/** A device that runs kernels on `threads` threads, with further settings. A GPU has no such pool and opens as always. */
export function openWithThreads(threads: number, settings: Settings = {}): Device {
  const device = openWith({ ...settings, SOFTMETAL_THREADS: String(threads) });
  const { backend, name } = device.info;
  if (backend === "SoftMetal" && / threads?\)$/.test(name) && !new RegExp(`\\b${threads} threads?\\b`).test(name)) {
    device.dispose();
    throw new Error(`asked for ${threads} threads, got the device "${name}"`);
  }
  return device;
}
