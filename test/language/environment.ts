/** Devices opened with variables of SoftMetal's environment. */
import { dlopen } from "bun:ffi";
import { Device } from "../../src/index.ts";

// The library reads the C environment, which assignments to process.env do not reach.
const libc = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  setenv: { args: ["ptr", "ptr", "i32"], returns: "i32" },
  unsetenv: { args: ["ptr"], returns: "i32" },
}).symbols;

type Variable = "SOFTMETAL_THREADS" | "SOFTMETAL_TIME_LIMIT" | "SOFTMETAL_ORDER";

function set(variable: string, value: string | undefined): void {
  const name = Buffer.from(`${variable}\0`);
  const status = value === undefined ? libc.unsetenv(name) : libc.setenv(name, Buffer.from(`${value}\0`), 1);
  if (status !== 0) throw new Error(`cannot set ${variable}`);
}

/** A device that found `variables` in the environment when it was opened. */
export function openWith(variables: Partial<Record<Variable, string>>): Device {
  const entries = Object.entries(variables);
  for (const [name, value] of entries) set(name, value);
  try {
    return Device.open();
  } finally {
    for (const [name] of entries) set(name, process.env[name]);
  }
}
