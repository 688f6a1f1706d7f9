import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { argumentNames } from "../../src/ffi/argumentNames.ts";
import { Block } from "../../src/ffi/block.ts";
import { bindingCodes, failureCodes } from "../../src/ffi/generated/codes.ts";
import { structSizes } from "../../src/ffi/generated/structs.ts";
import { symbols } from "../../src/ffi/generated/symbols.ts";
import { nativeError } from "../../src/ffi/status.ts";
import { NativeScene, statusCodes } from "../helpers/abi.ts";
import { layouts } from "../helpers/packed.ts";
import { runChecked } from "../helpers/run.ts";

const scene = new NativeScene();
afterAll(() => scene.close());
const { native } = scene;

const text = (value: string) => new TextEncoder().encode(`${value}\0`);

/** Refused: a cache of no slot. */
function refuse(): void {
  const block = new Block(structSizes.MAKvCacheCopyArgs);
  expect(native.ma_kv_cache_copy(scene.pass(), block.bytes)).toBe(statusCodes.invalidHandle);
}

describe("the thread's last failure", () => {
  test("has a function, an argument and a message, which begins with no function's name", () => {
    refuse();
    const { function: name, argument, message } = scene.lastFailure();
    expect({ name, argument }).toEqual({ name: "ma_kv_cache_copy", argument: "src" });
    expect(message).toStartWith("src");
    expect(message).not.toContain("ma_");
  });

  test("stays until the next failure, whatever succeeds in between", () => {
    refuse();
    const before = scene.lastFailure();
    scene.buffer(16);
    expect(scene.lastFailure()).toEqual(before);
    expect(native.ma_pass_commit(0)).toBe(statusCodes.invalidHandle);
    expect(scene.lastFailure().function).toBe("ma_pass_commit");
  });

  test("without an argument: an empty one, and none in the error", () => {
    const pass = scene.pass();
    native.ma_pass_commit(pass);
    expect(native.ma_pass_commit(pass)).toBe(statusCodes.invalidState);
    expect(scene.lastFailure().argument).toBe("");
    const error = nativeError(native, statusCodes.invalidState);
    expect([error.code, error.argument]).toEqual(["invalid-state", undefined]);
    expect(Object.keys(failureCodes)).toEqual(["message", "argument", "function"]);
  });

  test.each(Object.entries(failureCodes))("%s is cut to the capacity, and its whole length returned", (part, code) => {
    refuse();
    const whole = scene.lastFailure()[part as keyof typeof failureCodes];
    for (const capacity of [0, 1, 2, 3, whole.length, whole.length + 1, whole.length + 5]) {
      const bytes = new Uint8Array(whole.length + 9).fill(0xa5);
      expect(native.ma_last_error(code, bytes, capacity)).toBe(whole.length);
      const written = capacity === 0 ? 0 : Math.min(capacity, whole.length + 1);
      expect(bytes.subarray(written).every((byte) => byte === 0xa5)).toBe(true);
      const expected = capacity === 0 ? "" : `${whole.slice(0, capacity - 1)}\0`;
      expect(new TextDecoder().decode(bytes.subarray(0, written))).toBe(expected);
    }
    expect(native.ma_last_error(code, null, 0)).toBe(whole.length);
    expect(native.ma_last_error(code, null, 100)).toBe(whole.length);
  });

  test("a part that is none is empty", () => {
    refuse();
    for (const part of [3, 4, 2 ** 32 - 1]) {
      const bytes = new Uint8Array(8).fill(0xa5);
      expect(native.ma_last_error(part, bytes, 8)).toBe(0);
      expect(bytes.every((byte) => byte === 0xa5)).toBe(true);
    }
  });

  test("a status that the header does not list", () => {
    expect(nativeError(native, -99)).toMatchObject({ code: "abi-mismatch", message: expect.stringContaining("-99") });
  });
});

describe("names of arguments", () => {
  const child = join(import.meta.dir, "failure-child.ts");

  /** What a process that told the library `names`, or nothing, gets of each refusal. */
  async function failures(names?: string): Promise<Record<string, { argument: string; message: string }>> {
    return JSON.parse(await runChecked([process.execPath, child, ...(names === undefined ? [] : [names])]));
  }

  test("a C caller who named nothing gets the names of the C header", async () => {
    const found = await failures();
    expect(Object.fromEntries(Object.entries(found).map(([name, { argument }]) => [name, argument]))).toEqual({
      alone: "cacheK",
      withV: "cacheV",
      "withV, of K": "cacheK",
      position: "seqPosStart",
      stride: "Q_strides",
      length: "kL",
      quantized: "head_dim",
    });
    for (const { argument, message } of Object.values(found)) expect(message).toContain(argument);
    expect(found["position"]?.message).toMatch(/seqPosStart 9 .*nTokens 1 .*capacity 4/);
    expect(JSON.stringify(found)).not.toMatch(/layout\.|seqLenK|v\.cache/);
  });

  test("one who named them gets those names, with V and without", async () => {
    const found = await failures(
      [
        "ma_kv_cache_copy_seq cacheK store kStore",
        "ma_kv_cache_copy_seq cacheV vStore",
        "ma_kv_cache_copy_seq seqPosStart start",
        "ma_kv_cache_copy_seq nTokens count",
        "ma_flash_attn_prefill Q_strides strides.q",
        "ma_flash_attn_prefill kL keys",
        "ma_hadamard_quantize_kv head_dim size",
        "ma_build_mask seqPosStart notThis",
      ].join("\n"),
    );
    expect(Object.fromEntries(Object.entries(found).map(([name, { argument }]) => [name, argument]))).toEqual({
      alone: "store",
      withV: "vStore",
      "withV, of K": "kStore",
      position: "start",
      stride: "strides.q",
      length: "keys",
      quantized: "size",
    });
    expect(found["position"]?.message).toMatch(/start 9 .*count 1 .*capacity 4/);
    expect(JSON.stringify(found)).not.toMatch(/Q_strides|cacheK|cacheV|head_dim|notThis/);
  });

  test("a later line replaces an earlier one", async () => {
    const lines = ["ma_kv_cache_copy_seq cacheK first", "ma_kv_cache_copy_seq cacheK second third"].join("\n");
    const found = await failures(lines);
    expect([found["alone"]?.argument, found["withV, of K"]?.argument]).toEqual(["second", "third"]);
  });

  test.each([
    ["one word", "ma_pass_commit", "1 words"],
    ["two words", "ma_pass_commit pass", "2 words"],
    ["five words", "ma_pass_commit pass a b c", "5 words"],
    ["a good line and a bad one", "ma_pass_commit pass renamed\nma_pass_commit", "1 words"],
  ])("%s: refused, and nothing is named", (_, names, says) => {
    expect(native.ma_name_arguments(text(names))).toBe(statusCodes.invalidArgument);
    expect(scene.lastFailure()).toMatchObject({ argument: "names", function: "ma_name_arguments" });
    expect(scene.lastError()).toContain(says);
    expect(native.ma_pass_commit(0)).toBe(statusCodes.invalidHandle);
    expect(scene.lastFailure().argument).toBe("pass");
  });

  test.each([
    ["no names", text("")],
    ["NULL", null],
  ])("%s: refused", (_, names) => {
    expect(native.ma_name_arguments(names)).toBe(statusCodes.invalidArgument);
    expect(scene.lastFailure().argument).toBe("names");
  });

  test("the package names arguments that the C functions have, each once", async () => {
    const lines = argumentNames.split("\n").map((line) => line.split(" "));
    expect(lines.length).toBeGreaterThan(40);
    // A field of a struct in a struct by its name alone, or with that of the struct, as in `tail.slots`.
    const fieldsOf = (name: string): string[] =>
      layouts.structs.get(name)?.fields.flatMap((field) => {
        const inner = fieldsOf(field.type);
        return [field.name, ...inner, ...inner.map((each) => `${field.name}.${each}`)];
      }) ?? [];
    // `kv_cache_copy_seq` to `KvCacheCopySeq`; the one struct that is named otherwise is that of kernels.
    const structOf = (name: string) =>
      `MA${name.replace(/^ma_/, "_").replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())}Args`;
    const header = await Bun.file(
      `${import.meta.dir}/../../swift/Sources/CMetalAttention/include/metal_attention.h`,
    ).text();
    /** Of a function without a struct. */
    const parametersOf = (name: string) =>
      [...(header.match(new RegExp(`^int32_t ${name}\\(([^)]*)\\)`, "m"))?.[1] ?? "").matchAll(/(\w+)(?=,|$)/g)].map(
        ([parameter]) => parameter,
      );
    for (const [name = "", argument = "", ...given] of lines) {
      expect(Object.keys(symbols)).toContain(name);
      const struct = name === "ma_encode_kernel" ? "MAKernelDispatch" : structOf(name);
      // The kinds of a dispatch's bindings have names too.
      const known = [
        ...(layouts.structs.has(struct) ? fieldsOf(struct) : parametersOf(name)),
        ...(struct === "MAKernelDispatch" ? Object.keys(bindingCodes) : []),
      ];
      // One list serves all calls of the quantized cache, of which none has every name.
      if (!name.startsWith("ma_hadamard"))
        expect([name, argument, known.includes(argument)]).toEqual([name, argument, true]);
      expect([1, 2]).toContain(given.length);
    }
    expect(new Set(lines.map(([name, argument]) => `${name} ${argument}`)).size).toBe(lines.length);
  });
});
