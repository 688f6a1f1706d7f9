import { dlopen, FFIType } from "bun:ffi";
import { cpus, loadavg, totalmem } from "node:os";
import { Device } from "../../src/index.ts";

const libc = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  setenv: { args: [FFIType.cstring, FFIType.cstring, FFIType.i32], returns: FFIType.i32 },
  unsetenv: { args: [FFIType.cstring], returns: FFIType.i32 },
});

const threadsVariable = "SOFTMETAL_THREADS";

/**
 * A device that runs kernels on `threads` threads (a GPU ignores it). The
 * library reads the C environment, which process.env does not write to.
 */
export function openDevice(threads: number): Device {
  const name = cString(threadsVariable);
  libc.symbols.setenv(name, cString(String(threads)), 1);
  try {
    return Device.open();
  } finally {
    const before = process.env[threadsVariable];
    if (before === undefined) libc.symbols.unsetenv(name);
    else libc.symbols.setenv(name, cString(before), 1);
  }
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

/** Processor, memory, versions and what else is running, for the reader of the figures. */
export function describeMachine(): string {
  using device = Device.open();
  const processors = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return (
    `${processors[0]?.model.trim() ?? "unknown processor"}, ${processors.length} threads, ${memory} GiB, ` +
    `${process.platform} ${process.arch}, Bun ${Bun.version}, device ${device.info.name} (${device.info.backend}); ` +
    `load ${loadavg()[0]?.toFixed(2)} before the run`
  );
}
