import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { decodeFixture, encodeFixture, type FixtureContent } from "../../scripts/fixtures/file.ts";
import { type Manifest, readFixture, readManifest } from "../../scripts/fixtures/manifest.ts";
import type { Fixture } from "../../scripts/fixtures/operation.ts";
import { allCases } from "../../scripts/fixtures/operations/all.ts";
import { runFixture } from "../../scripts/fixtures/run.ts";
import { Device } from "../../src/index.ts";
import { seededRandom } from "../helpers/random.ts";

const cases = allCases();

const committed = resolve(import.meta.dir, "../fixtures");
const device = Device.open();
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "metal-attention-fixtures-"));
});
afterAll(() => {
  device.dispose();
  rmSync(folder, { recursive: true, force: true });
});

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error("expected an error, but nothing was thrown");
}

function caseNamed(name: string): Fixture {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found.make(1);
}

/** A folder with one copied fixture, after `change` had its way with the manifest's JSON. */
let copies = 0;
function changed(change: (manifest: Manifest) => unknown): string {
  const copy = join(folder, String(copies++));
  mkdirSync(copy);
  const manifest = readManifest(committed);
  const [entry] = manifest.cases;
  if (entry === undefined) throw new Error("no committed case");
  copyFileSync(join(committed, entry.file), join(copy, entry.file));
  const one = { ...manifest, cases: [entry] };
  const content = change(one) ?? one;
  writeFileSync(join(copy, "manifest.json"), typeof content === "string" ? content : JSON.stringify(content));
  return copy;
}

/** The same for its one entry. */
const changedEntry = (fields: Record<string, unknown>) =>
  changed((manifest) => ({ ...manifest, cases: manifest.cases.map((entry) => ({ ...entry, ...fields })) }));

describe("a manifest", () => {
  const hostile: [what: string, make: () => string, ...parts: string[]][] = [
    ["that is missing", () => join(folder, "nowhere"), "manifest.json is missing"],
    ["that is no JSON", () => changed(() => "{"), "not JSON"],
    ["that is no UTF-8", notUtf8, "not JSON"],
    ["that is an array", () => changed(() => "[]"), "manifest.json: "],
    ["of another version", () => changed((m) => ({ ...m, version: 2 })), "version"],
    ["with a surplus field", () => changed((m) => ({ ...m, more: 1 })), "more"],
    ["without cases", () => changed((m) => ({ ...m, cases: [] })), "cases"],
    ["with a seed below 0", () => changed((m) => ({ ...m, seed: -1 })), "seed"],
    ["with a case twice", () => changed((m) => ({ ...m, cases: [...m.cases, ...m.cases] })), "twice"],
    ["with a key twice", () => changed((m) => JSON.stringify(m).replace("{", '{"seed":1,')), '"seed" twice'],
    ["with too many cases", () => changed((m) => ({ ...m, cases: Array(10_001).fill(m.cases[0]) })), "cases"],
    ["with a hash that is none", () => changedEntry({ sha256: "A".repeat(64) }), "cases.0.sha256", "hexadecimal"],
    ["with an unknown tolerance", () => changedEntry({ tolerance: { cache: { kind: "any" } } }), "tolerance.cache"],
    [
      "with a negative bound",
      () => changedEntry({ tolerance: { cache: { kind: "error", maxError: -1, maxNmse: 0 } } }),
      "maxError",
    ],
    ...[
      "../x.safetensors",
      "/etc/x.safetensors",
      "a/b.safetensors",
      "..\\x.safetensors",
      ".safetensors",
      "x.json",
      "x\0.safetensors",
    ].map((file): [string, () => string, ...string[]] => [
      `whose file is ${JSON.stringify(file)}`,
      () => changedEntry({ file }),
      "cases.0.file",
      "not a plain file name",
    ]),
  ];
  function notUtf8(): string {
    const copy = changed(() => "{}");
    writeFileSync(join(copy, "manifest.json"), new Uint8Array([0x7b, 0xff, 0x7d]));
    return copy;
  }
  test.each(hostile)("%s is refused", (_, make, ...parts) => {
    const path = make();
    const message = messageOf(() => readManifest(path));
    for (const part of parts) expect(message).toContain(part);
    expect(message).toContain("manifest.json");
  });

  test("larger than 16 MiB is refused unread", () => {
    const copy = changed(() => " ".repeat(16 * 2 ** 20 + 1));
    expect(messageOf(() => readManifest(copy))).toContain("more than 16777216");
  });
});

describe("the file of a case", () => {
  const fault = (copy: string): string => {
    const [entry] = readManifest(copy).cases;
    if (entry === undefined) throw new Error("no case");
    return messageOf(() => readFixture(copy, entry));
  };
  const fileOf = (copy: string) => join(copy, readManifest(copy).cases[0]?.file ?? "");

  test("with one bit changed is refused, wherever it is", () => {
    const copy = changed(() => undefined);
    const bytes = readFileSync(fileOf(copy));
    for (const at of [0, 20, bytes.length >> 1, bytes.length - 1]) {
      const damaged = new Uint8Array(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      writeFileSync(fileOf(copy), damaged);
      expect(fault(copy)).toContain("SHA-256");
      expect(fault(copy)).toContain("damaged");
    }
  });

  test("that is cut, missing, a folder or a link is refused", () => {
    const cut = changed(() => undefined);
    writeFileSync(fileOf(cut), readFileSync(fileOf(cut)).subarray(0, 100));
    expect(fault(cut)).toContain("100 bytes");
    rmSync(fileOf(cut));
    expect(fault(cut)).toContain("missing");
    symlinkSync(join(committed, readManifest(committed).cases[0]?.file ?? ""), fileOf(cut));
    expect(fault(cut)).toContain("no regular file");
    rmSync(fileOf(cut));
    mkdirSync(fileOf(cut));
    expect(fault(cut)).toContain("no regular file");
  });

  test("with another hash in the manifest is refused, and so is another case's", () => {
    expect(fault(changedEntry({ sha256: "0".repeat(64) }))).toContain("0".repeat(64));
    expect(fault(changedEntry({ name: "kvCacheCopy.other" }))).toContain("kvCacheCopy.other");
    expect(fault(changedEntry({ operation: "flashAttnPrefill" }))).toContain("flashAttnPrefill");
  });

  const content = (): FixtureContent => caseNamed("kvCacheCopy.f32-ring");
  const u8 = { dtype: "U8", shape: [1], bytes: new Uint8Array(1) } as const;
  test("is read as it was written, and refused without its metadata", () => {
    const { name, operation, params, inputs, expected } = content();
    expect(decodeFixture(encodeFixture(content()), "f")).toEqual({ name, operation, params, inputs, expected });
    expect(messageOf(() => decodeFixture(new Uint8Array([2, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d]), "f"))).toContain(
      "f: metadata",
    );
  });
  test("with a tensor that is neither input nor expected is refused", () => {
    const text = new TextDecoder("latin1").decode(encodeFixture({ ...content(), inputs: new Map([["x", u8]]) }));
    const bytes = Uint8Array.from(text.replace('"input.x"', '"other.x"'), (char) => char.charCodeAt(0));
    expect(messageOf(() => decodeFixture(bytes, "f"))).toContain("input.NAME");
  });
});

describe("a fixture that no operation can run", () => {
  const copy = () => caseNamed("kvCacheCopy.f32-ring");
  const prefill = () => caseNamed("flashAttnPrefill.bf16-d64-none");
  const u8 = { dtype: "U8", shape: [1], bytes: new Uint8Array(1) } as const;
  const with_ = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V) => new Map([...map, [key, value] as const]);
  const hostile: [what: string, fixture: () => Fixture, ...parts: string[]][] = [
    ["an unknown operation", () => ({ ...copy(), operation: "toString" }), '"toString"', "kvCacheCopySeq"],
    ["parameters that are none", () => ({ ...copy(), params: null }), "params"],
    ["an unknown parameter", () => ({ ...copy(), params: { writePos: 0, more: 1 } }), "more"],
    ["a parameter of another type", () => ({ ...copy(), params: { writePos: "0" } }), "params.writePos"],
    ["a parameter out of range", () => ({ ...copy(), params: { writePos: 2 ** 32 } }), "params.writePos"],
    ["a write past the cache", () => ({ ...copy(), params: { writePos: 25 } }), "writePos"],
    ["a missing input", () => ({ ...copy(), inputs: new Map() }), '"src" is missing'],
    ["a surplus input", () => ({ ...copy(), inputs: with_(copy().inputs, "x", u8) }), 'no input "x"'],
    [
      "an input of a dtype that no device has",
      () => ({
        ...copy(),
        inputs: with_(copy().inputs, "src", { dtype: "F64", shape: [1], bytes: new Uint8Array(8) }),
      }),
      "F64",
    ],
    [
      "an empty input",
      () => ({
        ...copy(),
        inputs: with_(copy().inputs, "src", { dtype: "F32", shape: [0, 4], bytes: new Uint8Array(0) }),
      }),
      "no elements",
    ],
    ["nothing expected", () => ({ ...copy(), expected: new Map() }), "nothing is expected"],
    [
      "an output that there is not",
      () => ({ ...copy(), expected: with_(copy().expected, "x", u8) }),
      "x: the operation has no such output",
    ],
    [
      "an output with a name that objects have",
      () => ({ ...copy(), expected: with_(copy().expected, "constructor", u8) }),
      "constructor: the operation has no such output",
    ],
    ["no tolerance", () => ({ ...copy(), tolerance: {} }), "no tolerance"],
    [
      "another shape expected",
      () => ({ ...prefill(), expected: new Map([["out", { dtype: "F64", shape: [1], bytes: new Uint8Array(8) }]]) }),
      "[1]",
    ],
    [
      "a mask of 2^40 elements",
      () => ({
        ...caseNamed("buildCausalMask.bool-square"),
        params: { dtype: "bool", seqLenQ: 2 ** 20, seqLenK: 2 ** 20, qOffsetInK: 0 },
      }),
      "1048576",
    ],
    [
      "strides that leave a tensor",
      () => {
        const strided = caseNamed("flashAttnPrefill.bf16-d64-strides");
        const { layout } = strided.params as { layout: object };
        const q = { batch: 0, head: 2 ** 52, token: 1 };
        return { ...strided, params: { ...(strided.params as object), layout: { ...layout, q } } };
      },
      "9007199254741144",
    ],
  ];
  test.each(hostile)("%s has its fault in words", (_, fixture, ...parts) => {
    const { fault } = runFixture(device, fixture());
    for (const part of parts) expect(fault).toContain(part);
  });
});

test("any change of a header is refused or has its outcome: never a crash", () => {
  const random = seededRandom(41);
  const below = (end: number) => Math.floor(random() * end);
  const small = cases.filter(({ operation }) => operation !== "flashAttnPrefill" || random() < 0.1);
  const counts = { refused: 0, wrong: 0, right: 0 };
  for (let i = 0; i < 2000; i++) {
    const each = small[below(small.length)];
    if (each === undefined) throw new Error("no case");
    const fixture = each.make(1);
    const bytes = encodeFixture(fixture);
    const headerLength = new DataView(bytes.buffer).getUint32(0, true);
    // A digit for a digit keeps the JSON valid, so that the numbers are what is checked.
    const header = Array.from(bytes.subarray(8, 8 + headerLength), (byte, at) => ({ byte, at }));
    const digits = header.filter(({ byte }) => byte >= 0x30 && byte <= 0x39);
    const places = i % 3 === 0 ? header : digits;
    for (let changes = 1 + below(2); changes > 0; changes--) {
      const place = places[below(places.length)];
      if (place !== undefined) bytes[8 + place.at] = i % 3 === 0 ? below(256) : 0x30 + below(10);
    }
    let content: FixtureContent;
    try {
      content = decodeFixture(bytes, "f");
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
      counts.refused += 1;
      continue;
    }
    const { fault } = runFixture(device, { ...content, tolerance: fixture.tolerance });
    counts[fault === undefined ? "right" : "wrong"] += 1;
  }
  // All three happen: a change that goes nowhere tests nothing.
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(50);
}, 120_000);

describe("a planted mistake in what is expected", () => {
  const planted: [kind: string, name: string, output: string, change: (bytes: Uint8Array) => void, part: string][] = [
    ["bits: the last bit of one element", "kvCacheCopy.f32-ring", "cache", (bytes) => flip(bytes, 0, 0), "element 0"],
    ["bits-or-nan: the same", "kvCacheCopySeq.f32-to-f16-wraps", "cache", (bytes) => flip(bytes, 2, 0), "element 1"],
    [
      "error: a value off by 0.1",
      "flashAttnPrefill.bf16-d64-none",
      "out",
      (bytes) => addTo(bytes, 5, 0.1),
      "element 5",
    ],
    [
      "error: one that should be exactly 0",
      "flashAttnPrefill.bf16-d64-none",
      "out",
      (bytes) => setTo(bytes, 9, 0),
      "exactly 0",
    ],
    ["error: NaN", "flashAttnPrefill.bf16-d64-none", "out", (bytes) => setTo(bytes, 9, Number.NaN), "element 9"],
    ["relative: a norm", "hadamardQuantizeKv.d64-4bit-nibble", "norms", (bytes) => flip(bytes, 12 + 1, 0), "element 3"],
    [
      "relative to a row: a value",
      "dequantizeKv.d64-4bit-nibble-to-f32",
      "k.out",
      (bytes) => addTo(bytes, 7, 1e-4),
      "element 7",
    ],
    [
      "relative: NaN",
      "dequantizeKv.d64-4bit-nibble-to-f32",
      "k.out",
      (bytes) => setTo(bytes, 8, Number.NaN),
      "element 8",
    ],
    ["a code", "hadamardQuantizeKvSeq.d96-4bit-nibble", "v.packed", (bytes) => flip(bytes, 60, 4), "element 60"],
    ["a mask's element", "buildCausalMask.bool-square", "mask", (bytes) => flip(bytes, 40, 0), "element 40"],
    ["a tile's class", "classifyMaskTiles.bf16-d64", "tileClasses", (bytes) => flip(bytes, 3, 1), "element 3"],
  ];
  function flip(bytes: Uint8Array, at: number, bit: number): void {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
  }
  function setTo(bytes: Uint8Array, element: number, value: number): void {
    new DataView(bytes.buffer, bytes.byteOffset).setFloat64(8 * element, value, true);
  }
  function addTo(bytes: Uint8Array, element: number, value: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    view.setFloat64(8 * element, view.getFloat64(8 * element, true) + value, true);
  }
  test.each(planted)("%s is found", (_, name, output, change, part) => {
    const fixture = caseNamed(name);
    expect(runFixture(device, fixture).fault).toBeUndefined();
    const tensor = fixture.expected.get(output);
    if (tensor === undefined) throw new Error(`no output ${output}`);
    const bytes = tensor.bytes.slice();
    change(bytes);
    const wrong = { ...fixture, expected: new Map([...fixture.expected, [output, { ...tensor, bytes }]]) };
    expect(runFixture(device, wrong).fault).toContain(part);
  });
});
