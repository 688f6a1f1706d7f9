import { dlopen } from "bun:ffi";
import { Device } from "../../src/index.ts";

// The library reads the C environment, which assignments to process.env do not reach.
const libc = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
  unsetenv: { args: ["ptr"], returns: "i32" },
}).symbols;

const variable = "SOFTMETAL_THREADS";

function setThreads(value: string | undefined): void {
  const name = Buffer.from(`${variable}\0`);
  const status = value === undefined ? libc.unsetenv(name) : libc.setenv(name, Buffer.from(`${value}\0`), 1);
  if (status !== 0) throw new Error(`cannot set ${variable}`);
}

/** A device whose worker pool has `threads` threads. An Apple GPU has no such pool and opens as always. */
export function openWithThreads(threads: number): Device {
  setThreads(String(threads));
  try {
    const device = Device.open();
    const { backend, name } = device.info;
    if (backend === "SoftMetal" && !new RegExp(`\\b${threads} threads?\\b`).test(name)) {
      device.dispose();
      throw new Error(`asked for ${threads} threads, got the device "${name}"`);
    }
    return device;
  } finally {
    setThreads(process.env[variable]);
  }
}
