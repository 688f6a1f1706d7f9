import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { dtypes } from "../../src/device/dtypes.ts";
import { constantCodes } from "../../src/ffi/constants.ts";
import { packingCodes } from "../../src/ffi/hadamardLayout.ts";
import { accessBits, bindingKinds, dispatchForms, passStates } from "../../src/ffi/records.ts";
import { statusCodes } from "../../src/ffi/status.ts";
import { abiVersion, symbols, versionSymbol } from "../../src/ffi/symbols.ts";

const include = join(import.meta.dir, "../../swift/Sources/CMetalAttention/include");
const header = await Bun.file(join(include, "metal_attention.h")).text();

/** Enumerators of the header that begin with `prefix`, by the rest of their names. */
function enumerators(prefix: string): Record<string, number> {
  const pattern = new RegExp(`\\b${prefix}(\\w+) = (-?\\d+)`, "g");
  return Object.fromEntries([...header.matchAll(pattern)].map(([, name, value]) => [String(name), Number(value)]));
}

/** The bun:ffi type of a C parameter such as `const char *name` or `uint64_t length`. */
function ffiType(parameter: string): string {
  if (parameter.includes("*")) return "ptr";
  if (parameter.startsWith("uint64_t")) return "u64";
  if (/^(uint32_t|ma_device|ma_buffer|ma_pass|ma_pipeline) /.test(parameter)) return "u32";
  throw new Error(`unknown parameter type: ${parameter}`);
}

describe("the C header and the TypeScript side agree on", () => {
  test("the ABI version", () => {
    expect(header).toContain(`#define MA_ABI_VERSION ${abiVersion}\n`);
  });

  test("every function and the types of its parameters", () => {
    const declared = [...header.matchAll(/^int32_t (ma_\w+)\(([^)]*)\);/gm)].map(([, name, list]) => {
      const parameters = String(list).replace(/\s+/g, " ").trim();
      return [name, parameters === "void" ? [] : parameters.split(", ").map(ffiType)] as const;
    });
    const bound = Object.entries({ ...versionSymbol, ...symbols });
    expect(declared.length).toBeGreaterThan(20);
    expect(Object.fromEntries(bound.map(([name, { args }]) => [name, [...args]]))).toEqual(
      Object.fromEntries(declared),
    );
    for (const [, { returns }] of bound) expect(returns).toBe("i32");
  });

  test("status codes", () => {
    const byCode = Object.fromEntries(statusCodes.map((code, index) => [code, -1 - index]));
    const declared = Object.entries(enumerators("MA_ERROR_")).map(([name, value]) => [
      name.toLowerCase().replaceAll("_", "-"),
      value,
    ]);
    expect(byCode).toEqual(Object.fromEntries(declared));
  });

  test("element types", () => {
    const declared = enumerators("MA_DTYPE_");
    const ofTensors = Object.entries(dtypes).map(([name, { code }]) => [name.toUpperCase(), code]);
    expect(declared).toMatchObject(Object.fromEntries(ofTensors));
    const ofConstants = Object.entries(constantCodes).map(([name, code]) => [name.toUpperCase(), code]);
    expect(declared).toEqual(Object.fromEntries(ofConstants));
  });

  test("packings of a quantised cache", () => {
    const byName = Object.entries(packingCodes).map(([name, code]) => [name.toUpperCase(), code]);
    expect(Object.fromEntries(byName)).toEqual(enumerators("MA_PACKING_"));
  });

  test("pass states, binding kinds, access bits and dispatch forms", () => {
    expect(enumerators("MA_PASS_")).toMatchObject(
      Object.fromEntries(passStates.map((state, value) => [state.toUpperCase(), value])),
    );
    expect(enumerators("MA_PASS_")).toMatchObject({ CONCURRENT: 0, SERIAL: 1 });
    expect(enumerators("MA_BINDING_")).toEqual({
      BUFFER: bindingKinds.buffer,
      BYTES: bindingKinds.bytes,
      THREADGROUP: bindingKinds.threadgroup,
    });
    expect(enumerators("MA_ACCESS_")).toEqual({ READ: accessBits.read, WRITE: accessBits.write });
    expect(accessBits["read-write"]).toBe(3);
    expect(enumerators("MA_DISPATCH_")).toEqual({
      THREADGROUPS: dispatchForms.threadgroups,
      THREADS: dispatchForms.threads,
    });
  });
});
