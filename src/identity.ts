import { version } from "../package.json";
import { display, refused } from "./checks.ts";
import type { MetalAttentionError } from "./errors.ts";

// A module that is evaluated again, as `bun --hot` does at each change, has classes of its own: objects that a program
// has kept (`globalThis.device ??= Device.open()`) are of the former ones. Registered symbols tell what they are, and
// the native handles inside say whether they can be used.

const versionKey = Symbol.for("metal-attention.version");

/** The property by which a device shows its state. */
export const deviceState: unique symbol = Symbol.for(`metal-attention@${version}.device`);
/** The property by which a tensor shows its state. */
export const tensorState: unique symbol = Symbol.for(`metal-attention@${version}.tensor`);
/** The property by which a pass shows its state. */
export const passState: unique symbol = Symbol.for(`metal-attention@${version}.pass`);
/** The property by which a pipeline shows its state. */
export const pipelineState: unique symbol = Symbol.for(`metal-attention@${version}.pipeline`);
/** The property by which tile classes show their state. */
export const tileClassesState: unique symbol = Symbol.for(`metal-attention@${version}.tileClasses`);

/** Lets objects of a class be told from those that another version of this package made. */
export function markVersion(Class: { readonly prototype: object }): void {
  Object.defineProperty(Class.prototype, versionKey, { value: version });
}

/** The error for a value that is no object of this version of the package; `expected` as in "a Tensor". */
export function notOurs(value: unknown, expected: string, argument: string): MetalAttentionError {
  const other =
    typeof value === "object" && value !== null ? (value as { [versionKey]?: unknown })[versionKey] : undefined;
  if (typeof other !== "string" || other === version)
    return refused(argument, `expected ${expected}, got ${display(value)}`);
  return refused(
    argument,
    `an object of metal-attention ${other}, which this process has loaded beside ${version}: install one version of it ` +
      "(bun why metal-attention shows who asks for which), or make the device and its objects again after the reload",
  );
}
