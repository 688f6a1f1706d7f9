import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  decodeSafetensors,
  encodeSafetensors,
  floatValues,
  readSafetensors,
  readSafetensorsHeader,
  type SafetensorsContent,
  type SafetensorsDType,
  type SafetensorsTensor,
  writeSafetensors,
} from "../../src/safetensors/index.ts";
import { expectRefusal, rejectionOf } from "../helpers/errors.ts";
import { seededRandom } from "../helpers/random.ts";

/** A file from its parts, by hand: independent of the writer. */
function file(header: unknown, dataLength = 0, declaredLength?: bigint): Uint8Array {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + dataLength);
  new DataView(bytes.buffer).setBigUint64(0, declaredLength ?? BigInt(text.length), true);
  bytes.set(text, 8);
  for (let i = 0; i < dataLength; i++) bytes[8 + text.length + i] = i;
  return bytes;
}

const f32 = (start: number, end: number, shape: number[] = [(end - start) / 4]) => ({
  dtype: "F32",
  shape,
  data_offsets: [start, end],
});

describe("reading", () => {
  test("a file written by hand, its data at an odd offset", () => {
    const header =
      '{"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[3,11]},"__metadata__":{"made":"by hand"}}   ';
    const bytes = file(header, 11);
    const data = new DataView(bytes.buffer, bytes.length - 8);
    data.setFloat32(0, 1.5, true);
    data.setFloat32(4, -2, true);
    const { tensors, metadata } = decodeSafetensors(bytes);
    expect([...tensors.keys()].sort()).toEqual(["a", "b"]);
    const a = tensors.get("a") as SafetensorsTensor;
    expect(a.shape).toEqual([1, 2]);
    expect([...floatValues(a)]).toEqual([1.5, -2]);
    expect([...(tensors.get("b") as SafetensorsTensor).bytes]).toEqual([0, 1, 2]);
    expect([...metadata]).toEqual([["made", "by hand"]]);
  });

  test("scalars, empty tensors and names that objects have by themselves", () => {
    const header =
      '{"__proto__":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"constructor":{"dtype":"I64","shape":[0,7],"data_offsets":[4,4]},"__metadata__":{"__proto__":"text"}}';
    const { tensors, metadata } = decodeSafetensors(file(header, 4));
    expect([...metadata]).toEqual([["__proto__", "text"]]);
    expect(tensors.get("__proto__")?.bytes.length).toBe(4);
    expect(tensors.get("constructor")?.shape).toEqual([0, 7]);
    expect(tensors.get("toString")).toBeUndefined();
  });

  const cases: [what: string, bytes: Uint8Array, ...parts: (string | number)[]][] = [
    ["an empty file", new Uint8Array(0), "0 bytes"],
    ["seven bytes", new Uint8Array(7), "7 bytes"],
    ["a header longer than the file", file({}, 0, 900n), 900, 2, "cut"],
    ["a header beyond the limit", file({}, 0, 100_000_001n), 100000001, 100000000],
    ["a header length with the highest bit", file({}, 0, 2n ** 63n), "9223372036854775808"],
    ["a header that is no JSON", file("{,}"), "not JSON"],
    ["a header that is no UTF-8", new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0, 0xff]), "not JSON"],
    ["a header that is an array", file("[]"), "no JSON object"],
    ["a header that is a number", file("17"), "no JSON object"],
    ["white space before the header", file(" {}"), "no JSON object"],
    ["a mark of the byte order before the header", file("\ufeff{}"), "not JSON"],
    ["metadata that is null", file({ __metadata__: null }), "__metadata__"],
    ["metadata that is a list", file({ __metadata__: ["text"] }), "__metadata__"],
    ["metadata whose only field is of objects", file('{"__metadata__":{"__proto__":1}}'), "__metadata__", "__proto__"],
    ["33 axes", file({ a: f32(0, 4, Array(33).fill(1)) }, 4), '"a"', "shape", 32],
    ["an entry that is no object", file({ a: 3 }), '"a"'],
    ["an entry without offsets", file({ a: { dtype: "F32", shape: [1] } }, 4), '"a"', "data_offsets"],
    ["an entry with a surplus field", file({ a: { ...f32(0, 4), more: 1 } }, 4), '"a"', "more"],
    ["an unknown dtype", file({ a: { ...f32(0, 4), dtype: "F8" } }, 4), '"a"', "dtype"],
    ["a negative extent", file({ a: f32(0, 4, [-1]) }, 4), '"a"', "shape.0"],
    ["an extent with a fraction", file({ a: f32(0, 4, [0.5, 2]) }, 4), '"a"', "shape.0"],
    ["a product beyond 2^53", file({ a: f32(0, 4, [2 ** 40, 2 ** 40]) }, 4), '"a"', "too many"],
    ["a shape unlike the bytes", file({ a: f32(0, 8, [3]) }, 8), '"a"', 12, 8],
    ["offsets beyond the end", file({ a: f32(0, 8) }, 4), '"a"', 8, 4],
    ["offsets in reverse", file({ a: { ...f32(0, 0, [0]), data_offsets: [4, 0] } }, 4), '"a"', "4 to 0"],
    ["an overlap", file({ a: f32(0, 8), b: f32(4, 12) }, 12), '"b"', 4, 8],
    ["twice the same bytes", file({ a: f32(0, 8), b: f32(0, 8) }, 8), '"b"', 8],
    ["a gap", file({ a: f32(0, 4), b: f32(8, 12) }, 12), '"b"', 8, 4],
    ["bytes after the last tensor", file({ a: f32(0, 4) }, 6), "2 bytes at the end"],
    ["metadata that is no text", file({ __metadata__: { n: 1 } }), "__metadata__"],
    [
      "a name given twice",
      file(`{"a":${JSON.stringify(f32(0, 4))},"\\u0061":${JSON.stringify(f32(0, 4))}}`, 4),
      '"a" twice',
    ],
    [
      "a field given twice",
      file('{"a":{"dtype":"F32","dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4),
      '"dtype" twice',
    ],
  ];
  test.each(cases)("refuses %s", (_, bytes, ...parts) => {
    let argument: string | undefined;
    try {
      decodeSafetensors(bytes, "f.safetensors");
    } catch (error) {
      argument = (error as { argument?: string }).argument;
    }
    expect(argument).toStartWith("f.safetensors");
    expectRefusal(() => decodeSafetensors(bytes, "f.safetensors"), "invalid-argument", argument, ...parts);
  });

  test("a header alone tells where the tensors of a file are, and is refused as the whole file is", async () => {
    const folder = mkdtempSync(join(tmpdir(), "metal-attention-header-"));
    try {
      const bytes = encodeSafetensors({
        tensors: new Map([
          ["x", { dtype: "F16", shape: [3], bytes: Uint8Array.of(1, 2, 3, 4, 5, 6) }],
          ["y", { dtype: "I32", shape: [1], bytes: Uint8Array.of(7, 8, 9, 10) }],
        ]),
        metadata: new Map([["made", "here"]]),
      });
      const path = join(folder, "f.safetensors");
      await Bun.write(path, bytes);
      const { tensors, metadata } = await readSafetensorsHeader(path);
      const whole = decodeSafetensors(bytes);
      expect(metadata).toEqual(whole.metadata);
      expect([...tensors.keys()]).toEqual([...whole.tensors.keys()]);
      for (const [name, { dtype, shape, start, end }] of tensors) {
        expect(whole.tensors.get(name)).toEqual({ dtype, shape, bytes: bytes.subarray(start, end) });
      }
      for (const [what, hostile, ...parts] of cases) {
        await Bun.write(path, hostile);
        const { code, message } = await rejectionOf(readSafetensorsHeader(path));
        expect([what, code]).toEqual([what, "invalid-argument"]);
        for (const part of parts) expect(message).toContain(String(part));
      }
      const missing = join(folder, "missing");
      expect((await rejectionOf(readSafetensorsHeader(missing))).message).toContain(missing);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("a message stays short whatever the names of the file", () => {
    const long = "x".repeat(1e5);
    const entry = { dtype: "F32", shape: [1], data_offsets: [0, 4] };
    const hostile = [
      file({ [long]: 1 }),
      file({ a: { ...entry, [long]: 1 } }, 4),
      file({ __metadata__: { [long]: 1 } }),
      file(`{"${long}":1,"${long}":1}`),
    ];
    for (const bytes of hostile) expect(() => decodeSafetensors(bytes, "f")).toThrow(/^.{1,600}$/);
  });

  test("a key given twice is found however long the strings are", () => {
    const long = "x".repeat(3_000_000);
    for (const json of [`{"${long}":{},"${long}":{}}`, `{"__metadata__":{"a":"${long}","b":"","b":""}}`]) {
      expectRefusal(() => decodeSafetensors(file(json), "f"), "invalid-argument", "f", "twice");
    }
    const escapes = `{"__metadata__":{"a":"${'\\\\\\"'.repeat(500_000)}","a\\\\":"","\\"a":""}}`;
    expect(decodeSafetensors(file(escapes)).metadata.size).toBe(3);
  });

  test.each([0, 1, 2, 3, 4, 5])("a key that ends in %d backslashes is told from others", (count) => {
    for (const end of ["", '"']) {
      const key = JSON.stringify("\\".repeat(count) + end);
      expectRefusal(
        () => decodeSafetensors(file(`{"__metadata__":{${key}:"","b":"",${key}:""}}`), "f"),
        "invalid-argument",
        "f",
        "twice",
      );
      const texts = `{"__metadata__":{${key}:${key},"b":${key},"c":""}}`;
      expect([...decodeSafetensors(file(texts)).metadata.keys()]).toEqual([JSON.parse(key), "b", "c"]);
    }
  });

  test("any cut of a good file, and any flipped bit of its header, is refused or read: never a crash", () => {
    const good = encodeSafetensors({
      tensors: new Map([
        ["x", { dtype: "F16", shape: [3], bytes: new Uint8Array(6) }],
        ["y", { dtype: "I32", shape: [1], bytes: new Uint8Array(4) }],
      ]),
    });
    for (let length = 0; length < good.length; length++) {
      expectRefusal(
        () => decodeSafetensors(good.subarray(0, length), "cut"),
        "invalid-argument",
        argumentOf(good, length),
      );
    }
    for (let bit = 0; bit < (good.length - 10) * 8; bit++) {
      const bytes = good.slice();
      bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
      try {
        decodeSafetensors(bytes);
      } catch (error) {
        expect((error as { code?: string }).code).toBe("invalid-argument");
      }
    }
  });

  /** A cut in the data is a matter of the tensor that lost bytes, a cut before it of the file. */
  function argumentOf(good: Uint8Array, length: number): string {
    const dataStart = good.length - 10;
    if (length < dataStart) return "cut";
    return length < dataStart + 4 ? 'cut: tensor "y"' : 'cut: tensor "x"';
  }
});

describe("writing", () => {
  const random = seededRandom(7);
  const sizes: Record<SafetensorsDType, number> = {
    F64: 8,
    I64: 8,
    U64: 8,
    F32: 4,
    I32: 4,
    U32: 4,
    I16: 2,
    U16: 2,
    F16: 2,
    BF16: 2,
    I8: 1,
    U8: 1,
    BOOL: 1,
  };
  const tensors = new Map<string, SafetensorsTensor>(
    (Object.entries(sizes) as [SafetensorsDType, number][]).map(([dtype, size], i) => [
      `${String.fromCharCode(109 - i)}`,
      { dtype, shape: [i, 3], bytes: Uint8Array.from({ length: i * 3 * size }, () => random() * 256) },
    ]),
  );
  const metadata = new Map([
    ["z", "ü"],
    ["a", '"'],
  ]);

  test("every dtype comes back as it was", () => {
    const back = decodeSafetensors(encodeSafetensors({ tensors, metadata }));
    expect(back.tensors.size).toBe(13);
    for (const [name, tensor] of tensors) expect(back.tensors.get(name)).toEqual(tensor);
    expect(new Map(back.metadata)).toEqual(metadata);
  });

  test("the order of the maps does not matter, and elements are aligned", () => {
    const bytes = encodeSafetensors({ tensors, metadata });
    const reversed = encodeSafetensors({
      tensors: new Map([...tensors].reverse()),
      metadata: new Map([...metadata].reverse()),
    });
    expect(reversed).toEqual(bytes);
    for (const { dtype, bytes: data } of decodeSafetensors(bytes).tensors.values()) {
      expect(data.byteOffset % sizes[dtype]).toBe(0);
    }
  });

  test.each([
    ["below 0", [-1, -4]],
    ["with a fraction", [0.5, 8]],
    ["that is not a number", [Number.NaN]],
    ["beyond 2^53", [2 ** 60, 0]],
    ["of 33 axes", [4, ...Array<number>(32).fill(1)]],
  ])("refuses a shape that reading would refuse: %s", (_, shape) => {
    const x: SafetensorsTensor = { dtype: "U8", shape, bytes: new Uint8Array(4) };
    expectRefusal(() => encodeSafetensors({ tensors: new Map([["x", x]]) }), "invalid-argument", "x", "shape");
  });

  test("refuses a tensor that is not as long as its shape, and the name of the metadata", () => {
    const x: SafetensorsTensor = { dtype: "F32", shape: [2, 3], bytes: new Uint8Array(20) };
    expectRefusal(() => encodeSafetensors({ tensors: new Map([["x", x]]) }), "invalid-argument", "x", 24, 20);
    const bytes = new Uint8Array(24);
    expectRefusal(
      () => encodeSafetensors({ tensors: new Map([["__metadata__", { ...x, bytes }]]) }),
      "invalid-argument",
      "__metadata__",
    );
  });

  test("refuses more than an ArrayBuffer holds", () => {
    const half: SafetensorsTensor = { dtype: "U8", shape: [2 ** 31], bytes: new Uint8Array(2 ** 31) };
    const halves = new Map(["a", "b", "c"].map((name) => [name, half]));
    expectRefusal(() => encodeSafetensors({ tensors: halves }), "unsupported", "tensors", 3 * 2 ** 31 + 240, 2 ** 32);
  });

  const x = { dtype: "U8", shape: [3], bytes: new Uint8Array(3) };
  const wrong: [what: string, content: unknown, argument: string, part: string][] = [
    ["nothing", undefined, "content", "undefined"],
    ["null", null, "content", "null"],
    ["no tensors", {}, "tensors", "undefined"],
    ["tensors in an object", { tensors: { x } }, "tensors", "an object"],
    ["tensors in an array", { tensors: [["x", x]] }, "tensors", "an array"],
    ["a name that is no string", { tensors: new Map([[3, x]]) }, "tensors", "3"],
    ["a tensor that is null", { tensors: new Map([["x", null]]) }, "x", "null"],
    ["no dtype", { tensors: new Map([["x", { ...x, dtype: undefined }]]) }, "x", "dtype"],
    ["a dtype of objects", { tensors: new Map([["x", { ...x, dtype: "toString" }]]) }, "x", "dtype"],
    ["no shape", { tensors: new Map([["x", { ...x, shape: undefined }]]) }, "x", "shape"],
    ["a dtype in an array", { tensors: new Map([["x", { ...x, dtype: ["U8"] }]]) }, "x", "an array"],
    ["a dtype without a text", { tensors: new Map([["x", { ...x, dtype: Object.create(null) }]]) }, "x", "an object"],
    [
      "an extent without a text",
      { tensors: new Map([["x", { ...x, shape: [Object.create(null)] }]]) },
      "x",
      "an object",
    ],
    ["an extent that is a symbol", { tensors: new Map([["x", { ...x, shape: [Symbol("s")] }]]) }, "x", "Symbol(s)"],
    [
      "an extent that is missing",
      { tensors: new Map([["x", { ...x, shape: Object.assign(Array(2), { 0: 3 }) }]]) },
      "x",
      "undefined",
    ],
    ["a shape that is a number", { tensors: new Map([["x", { ...x, shape: 3 }]]) }, "x", "shape"],
    ["no bytes", { tensors: new Map([["x", { ...x, bytes: undefined }]]) }, "x", "bytes"],
    ["bytes in an array", { tensors: new Map([["x", { ...x, bytes: [1, 2, 3] }]]) }, "x", "an array"],
    ["bytes of another type", { tensors: new Map([["x", { ...x, bytes: new Uint16Array(3) }]]) }, "x", "bytes"],
    ["an unknown name", { tensors: new Map(), metaData: new Map() }, "metaData", "did you mean metadata"],
    ["an unknown name in a tensor", { tensors: new Map([["x", { ...x, byte: 1 }]]) }, "x.byte", "did you mean bytes"],
    ["metadata that is null", { tensors: new Map(), metadata: null }, "metadata", "null"],
    ["metadata in an object", { tensors: new Map(), metadata: { a: "b" } }, "metadata", "an object"],
    ["a number in metadata", { tensors: new Map(), metadata: new Map([["a", 1]]) }, "metadata", "1"],
    ["a number as a key of metadata", { tensors: new Map(), metadata: new Map([[2, "b"]]) }, "metadata", "2"],
  ];
  test.each(wrong)("refuses %s by name", async (_, content, argument, part) => {
    expectRefusal(() => encodeSafetensors(content as SafetensorsContent), "invalid-argument", argument, part);
    const folder = mkdtempSync(join(tmpdir(), "safetensors-"));
    const path = join(folder, "x");
    expect((await rejectionOf(writeSafetensors(path, content as SafetensorsContent))).argument).toBe(argument);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  test("to a file and back; a failure leaves nothing behind and names the path", async () => {
    const folder = mkdtempSync(join(tmpdir(), "safetensors-"));
    try {
      const path = join(folder, "a.safetensors");
      await writeSafetensors(path, { tensors });
      expect((await readSafetensors(path)).tensors.get("7")).toEqual(tensors.get("7") as SafetensorsTensor);
      const missing = join(folder, "none.safetensors");
      expect((await rejectionOf(readSafetensors(missing))).message).toContain(missing);
      // A folder cannot be replaced by a file.
      expect((await rejectionOf(writeSafetensors(folder, { tensors }))).message).toContain(folder);
      expect(readdirSync(folder)).toEqual(["a.safetensors"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a file in its place", () => {
  const root = mkdtempSync(join(tmpdir(), "metal-attention-files-"));
  afterAll(() => rmSync(root, { recursive: true }));
  const contentOf = (value: number) => ({
    tensors: new Map([["x", { dtype: "U8", shape: [1000], bytes: new Uint8Array(1000).fill(value) } as const]]),
  });
  const write = (path: string) => writeSafetensors(path, contentOf(1));
  const firstOf = async (path: string) => (await readSafetensors(path)).tensors.get("x")?.bytes[0];
  const folder = (name: string) => {
    const path = join(root, name);
    mkdirSync(path);
    return path;
  };
  const fifo = (name: string) => {
    const path = join(root, name);
    expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
    return path;
  };

  test("of several saves at once one stays whole, and none fails", async () => {
    const inside = folder("at once");
    const path = join(inside, "x.safetensors");
    await Promise.all(Array.from({ length: 16 }, (_, i) => writeSafetensors(path, contentOf(i))));
    expect(await firstOf(path)).toBeWithin(0, 16);
    expect(readdirSync(inside)).toEqual(["x.safetensors"]);
  });

  test("a name may be as long as the system allows", async () => {
    const path = join(root, "n".repeat(255));
    await writeSafetensors(path, contentOf(3));
    expect(await firstOf(path)).toBe(3);
  });

  test("what replaces a file has its permissions, and a new one those that files have", async () => {
    const path = join(root, "permissions");
    await writeSafetensors(path, contentOf(1));
    writeFileSync(join(root, "any"), "");
    expect(statSync(path).mode).toBe(statSync(join(root, "any")).mode);
    for (const mode of [0o600, 0o666, 0o640]) {
      chmodSync(path, mode);
      await writeSafetensors(path, contentOf(2));
      expect(statSync(path).mode & 0o777).toBe(mode);
    }
  });

  test("a link stays one, and the file that it leads to is replaced", async () => {
    const target = join(folder("elsewhere"), "target");
    const link = join(root, "link");
    writeFileSync(target, "before");
    symlinkSync(target, link);
    await writeSafetensors(link, contentOf(4));
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(await firstOf(target)).toBe(4);
    rmSync(target);
    expect((await rejectionOf(writeSafetensors(link, contentOf(5)))).message).toContain("ENOENT");
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  test("missing folders are made", async () => {
    const path = join(root, "a/b/c");
    await writeSafetensors(path, contentOf(6));
    expect(await firstOf(path)).toBe(6);
  });

  test("what is no regular file is neither replaced nor read", async () => {
    const device = join(root, "device");
    // A link, so that a test which fails does not replace the device.
    symlinkSync("/dev/null", device);
    for (const path of [folder("in the way"), fifo("fifo"), device]) {
      for (const call of [write, readSafetensors, readSafetensorsHeader]) {
        const { code, argument, message } = await rejectionOf(call(path));
        expect({ code, argument }).toEqual({ code: "invalid-argument", argument: path });
        expect(message).toContain("no regular file");
      }
    }
    expect(lstatSync(device).isSymbolicLink()).toBe(true);
    expect(lstatSync(join(root, "fifo")).isFIFO()).toBe(true);
  });

  test("of more than 4 GiB, the header alone is read", async () => {
    const path = join(root, "large");
    const length = 5 * 2 ** 30;
    const header = file({ x: { dtype: "U8", shape: [length], data_offsets: [0, length] } });
    writeFileSync(path, header);
    truncateSync(path, header.length + length);
    const { code, argument, message } = await rejectionOf(readSafetensors(path));
    expect({ code, argument }).toEqual({ code: "unsupported", argument: path });
    expect(message).toContain(`${header.length + length} bytes`);
    expect(message).toContain(`${2 ** 32}`);
    const place = (await readSafetensorsHeader(path)).tensors.get("x");
    expect([place?.start, place?.end]).toEqual([header.length, header.length + length]);
  });

  test("the system's reason is given, whatever it is", async () => {
    const file = join(root, "file");
    writeFileSync(file, "");
    const cases: [path: string, reason: string][] = [
      [join(file, "x"), "ENOTDIR"],
      [join(root, "n".repeat(256)), "ENAMETOOLONG"],
    ];
    for (const [path, reason] of cases) {
      for (const call of [write, readSafetensors, readSafetensorsHeader]) {
        const { code, argument, message } = await rejectionOf(call(path));
        expect({ code, argument }).toEqual({ code: "invalid-argument", argument: path });
        expect(message).toContain(reason);
      }
    }
  });

  test("a URL is no path", async () => {
    for (const path of ["s3://bucket/x", "file:///x", "https://example.com/x"]) {
      for (const call of [write, readSafetensors, readSafetensorsHeader]) {
        const { code, argument, message } = await rejectionOf(call(path));
        expect({ code, argument }).toEqual({ code: "invalid-argument", argument: "path" });
        expect(message).toContain("URL");
      }
    }
  });
});

test("float values of every float dtype, and no other", () => {
  const tensor = (dtype: SafetensorsDType, values: ArrayBufferView): SafetensorsTensor => ({
    dtype,
    shape: [2],
    bytes: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  });
  expect([...floatValues(tensor("F64", new Float64Array([0.5, 0.1])))]).toEqual([0.5, Math.fround(0.1)]);
  expect([...floatValues(tensor("F32", new Float32Array([0.5, -3])))]).toEqual([0.5, -3]);
  expect([...floatValues(tensor("F16", new Uint16Array([0x3800, 0xc200])))]).toEqual([0.5, -3]);
  expect([...floatValues(tensor("BF16", new Uint16Array([0x3f00, 0xc040])))]).toEqual([0.5, -3]);
  // A Buffer's slice is a view of a larger one.
  const buffer = Buffer.from([9, 9, 0x00, 0x38]).subarray(2);
  expect([...floatValues({ dtype: "F16", shape: [1], bytes: buffer })]).toEqual([0.5]);
  expectRefusal(() => floatValues(tensor("I32", new Int32Array(2)), "k"), "invalid-argument", "k", "I32");
});

test("float values are those of a tensor whose bytes fit its shape", () => {
  const good = { dtype: "F32", shape: [2], bytes: new Uint8Array(8) };
  const refuse = (tensor: unknown, ...parts: (string | number)[]) =>
    expectRefusal(() => floatValues(tensor as SafetensorsTensor, "w"), "invalid-argument", "w", ...parts);
  refuse(undefined, "undefined");
  refuse({ ...good, bytes: "abcd" }, "Uint8Array");
  refuse({ ...good, bytes: 8 }, "Uint8Array", 8);
  refuse({ ...good, bytes: new Float32Array(2) }, "Uint8Array");
  refuse({ ...good, shape: [100] }, 400, 8);
  refuse({ ...good, bytes: new Uint8Array(7) }, 8, 7);
  refuse({ ...good, shape: undefined }, "shape");
  expectRefusal(() => floatValues(good as SafetensorsTensor, 3 as never), "invalid-argument", "name", 3);
});

test("what is no path and no bytes is refused by name", async () => {
  for (const path of [3, null, "", "a\0b"]) {
    for (const read of [readSafetensors, readSafetensorsHeader]) {
      const error = await rejectionOf(read(path as string));
      expect([error.code, error.argument]).toEqual(["invalid-argument", "path"]);
    }
    const error = await rejectionOf(writeSafetensors(path as string, { tensors: new Map() }));
    expect([error.code, error.argument]).toEqual(["invalid-argument", "path"]);
  }
  for (const bytes of [null, {}, new ArrayBuffer(10), new DataView(new ArrayBuffer(10))]) {
    expectRefusal(() => decodeSafetensors(bytes as Uint8Array), "invalid-argument", "bytes", "Uint8Array");
  }
  for (const label of [3, null, Symbol("s"), Object.create(null)]) {
    expectRefusal(() => decodeSafetensors(file({}), label), "invalid-argument", "label", "string");
  }
});
