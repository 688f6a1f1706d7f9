import { type Pointer, read } from "bun:ffi";
import type { Block } from "../../src/ffi/block.ts";
import { passCodes } from "../../src/ffi/generated/codes.ts";
import type { Native } from "../../src/ffi/library.ts";
import { invalidSources, kernels, sources } from "./kernels.ts";
import type { Random } from "./random.ts";
import type { StructShape } from "./structs.ts";
import type { Kind, Live, LiveBuffer, LiveDevice, World } from "./world.ts";

export type Argument = number | bigint | Uint8Array<ArrayBuffer> | null;

/** One call: what to pass, what its status has to be, and what follows when it succeeds. */
export interface Attempt {
  readonly args: readonly Argument[];
  /** `refused`: any code but MA_OK. `any`: MA_OK or any code. */
  readonly expect: "ok" | "refused" | "any";
  readonly done?: () => void;
  /** Memory that the arguments point to. */
  readonly keep?: readonly Uint8Array<ArrayBuffer>[];
}

/** A function of the C ABI under test. */
export interface FuzzedFunction {
  readonly name: keyof Native;
  /** How often it is called, relative to the others. */
  readonly weight: number;
  /** Arguments that must not be NULL. */
  readonly pointers?: readonly number[];
  /** The next call; undefined when there is none to make at present. */
  readonly attempt: (scene: Scene) => Attempt | undefined;
}

/** What attempts are made from. */
export interface Scene {
  readonly native: Native;
  readonly world: World;
  readonly random: Random;
  readonly shapes: ReadonlyMap<string, StructShape>;
  /** For results; a refused call must leave it as it is. */
  readonly out: Block;
  /** For text, of `text.bytes.length` bytes. */
  readonly text: Block;
  readonly address: (bytes: Uint8Array<ArrayBuffer>) => number;
}

const limits = { devices: 3, buffers: 16, pipelines: 8, passes: 6 };
const wrongHandleChance = 0.1;

/** Every function but those that encode. */
export const functions: readonly FuzzedFunction[] = [
  { name: "ma_device_open", weight: 1, pointers: [0], attempt: deviceOpen },
  { name: "ma_device_open_named", weight: 0.5, pointers: [0, 1], attempt: deviceOpenNamed },
  {
    name: "ma_device_close",
    weight: 0.1,
    attempt: onDevice(
      () => [],
      (scene, device) => scene.world.remove(device),
    ),
  },
  { name: "ma_device_info", weight: 10, pointers: [1], attempt: onDevice(({ out }) => [out.bytes]) },
  { name: "ma_buffer_create", weight: 40, pointers: [3, 4], attempt: bufferCreate },
  {
    name: "ma_buffer_info",
    weight: 30,
    pointers: [1, 2],
    attempt: on("buffer", ({ out }) => [out.bytes, out.bytes.subarray(8)]),
  },
  {
    name: "ma_buffer_release",
    weight: 10,
    attempt: on(
      "buffer",
      () => [],
      (scene, buffer) => scene.world.remove(buffer),
    ),
  },
  { name: "ma_buffer_collected", weight: 4, attempt: bufferCollected },
  { name: "ma_buffer_hold", weight: 10, pointers: [1], attempt: bufferHold },
  { name: "ma_hold_release", weight: 1, attempt: () => ({ args: [null, null], expect: "refused" }) },
  { name: "ma_buffer_written", weight: 10, attempt: bufferWritten },
  { name: "ma_buffer_address", weight: 10, pointers: [1], attempt: on("buffer", ({ out }) => [out.bytes]) },
  { name: "ma_source_register", weight: 3, pointers: [1, 2], attempt: sourceRegister },
  { name: "ma_kernel_names", weight: 2, pointers: [3], attempt: onDevice(textArguments) },
  { name: "ma_pipeline_create", weight: 6, pointers: [1, 4], attempt: (scene) => pipelineCreate(scene, false) },
  {
    name: "ma_pipeline_create_built_in",
    weight: 2,
    pointers: [1, 4],
    attempt: (scene) => pipelineCreate(scene, true),
  },
  { name: "ma_pipeline_info", weight: 20, pointers: [1], attempt: on("pipeline", ({ out }) => [out.bytes]) },
  { name: "ma_pipeline_executor", weight: 5, pointers: [3], attempt: on("pipeline", textArguments) },
  {
    name: "ma_pipeline_release",
    weight: 2,
    attempt: on(
      "pipeline",
      () => [],
      (scene, pipeline) => scene.world.remove(pipeline),
    ),
  },
  { name: "ma_pass_create", weight: 25, pointers: [2], attempt: passCreate },
  { name: "ma_pass_commit", weight: 12, attempt: passCommit },
  { name: "ma_pass_wait", weight: 15, attempt: passWait },
  { name: "ma_pass_info", weight: 30, pointers: [1], attempt: on("pass", ({ out }) => [out.bytes]) },
  { name: "ma_pass_describe", weight: 10, pointers: [3], attempt: on("pass", textArguments) },
  { name: "ma_pass_argument_bytes", weight: 10, pointers: [5], attempt: passArgumentBytes },
  {
    name: "ma_pass_release",
    weight: 14,
    attempt: on(
      "pass",
      () => [],
      (scene, pass) => scene.world.remove(pass),
    ),
  },
  { name: "ma_layout_json", weight: 1, pointers: [2], attempt: libraryText },
  { name: "ma_support_json", weight: 1, pointers: [2], attempt: libraryText },
  {
    name: "ma_kernels_provide",
    weight: 1,
    pointers: [0],
    // An Apple GPU takes anything.
    attempt: ({ text }) => ({ args: [text.bytes, BigInt(text.bytes.length)], expect: "any" }),
  },
  { name: "ma_name_arguments", weight: 2, pointers: [0], attempt: nameArguments },
  { name: "ma_layout_read", weight: 10, pointers: [0, 1, 3, 5, 6], attempt: layoutRead },
];

/** A call of a function whose first argument is a handle of `kind`, and that succeeds whenever the handle is right. */
function on<K extends Kind>(
  kind: K,
  rest: (scene: Scene) => Argument[],
  done?: (scene: Scene, object: Extract<Live, { kind: K }>) => void,
): (scene: Scene) => Attempt {
  return (scene) => {
    const object = subject(scene, kind);
    if (object === undefined) return { args: [scene.world.wrongHandle(kind), ...rest(scene)], expect: "refused" };
    return { args: [object.handle, ...rest(scene)], expect: "ok", done: () => done?.(scene, object) };
  };
}

function onDevice(
  rest: (scene: Scene) => Argument[],
  done?: (scene: Scene, device: LiveDevice) => void,
): (scene: Scene) => Attempt {
  return on("device", rest, done);
}

/** An open object, or undefined for a call with a wrong handle. */
export function subject<K extends Kind>({ world, random }: Scene, kind: K): Extract<Live, { kind: K }> | undefined {
  if (random.chance(wrongHandleChance)) return undefined;
  return world.any(kind as "device") as Extract<Live, { kind: K }> | undefined;
}

/** Buffer, capacity and needed length of a function that returns text. */
function textArguments({ random, text, out }: Scene): Argument[] {
  if (random.chance(0.2)) return [null, 0n, out.bytes];
  return [text.bytes, BigInt(random.below(text.bytes.length + 1)), out.bytes];
}

/** Text about the library itself, now and then into no buffer. */
function libraryText(scene: Scene): Attempt {
  if (scene.random.chance(0.3)) return { args: [null, 5n, scene.out.bytes], expect: "refused" };
  return { args: textArguments(scene), expect: "ok" };
}

function deviceOpen({ world, out }: Scene): Attempt | undefined {
  if (world.devices.length >= limits.devices) return undefined;
  return { args: [out.bytes], expect: "ok", done: () => world.addDevice(handleIn(out)) };
}

/** The device without which no test runs; others only where none of their names has. */
function deviceOpenNamed({ world, random, out }: Scene): Attempt | undefined {
  if (random.chance(0.3)) {
    const name = random.pick(["gpu", "-1", "cpu ", "99999999999999999999", "1000"]);
    return { args: [zeroTerminated(name), out.bytes], expect: "refused" };
  }
  if (world.devices.length >= limits.devices) return undefined;
  const args = [zeroTerminated(random.pick(["cpu", "0"])), out.bytes];
  return { args, expect: "ok", done: () => world.addDevice(handleIn(out)) };
}

function bufferCreate(scene: Scene): Attempt | undefined {
  const { world, random, out } = scene;
  const device = subject(scene, "device");
  if (device === undefined) {
    return { args: [world.wrongHandle("device"), 64n, 0, out.bytes, out.bytes.subarray(8)], expect: "refused" };
  }
  if (device.buffers.length >= limits.buffers) return undefined;
  const invalid = random.chance(0.1);
  const length = invalid
    ? random.pick([0n, 2n ** 63n, 2n ** 64n - 1n, 2n ** 50n])
    : BigInt(random.chance(0.2) ? random.between(1, 256) : random.between(1, 60000));
  const storage = random.chance(0.05) ? random.pick([2, 0xffff_ffff]) : random.below(2);
  return {
    args: [device.handle, length, storage, out.bytes, out.bytes.subarray(8)],
    expect: invalid || storage > 1 ? "refused" : "ok",
    done: () => {
      const isPrivate = storage === 1;
      const buffer: LiveBuffer = { kind: "buffer", handle: handleIn(out), device, length: Number(length), isPrivate };
      const address = out.getU64(2);
      if (isPrivate && address !== 0) throw new Error(`a private buffer has the address ${address}, not NULL`);
      if (!isPrivate) checkZero(address, buffer.length);
      world.add(buffer);
    },
  };
}

/** Looks at the first and the last byte of a new buffer. */
function checkZero(address: number, length: number): void {
  const bytes = [0, length - 1].map((offset) => read.u8(address as Parameters<typeof read.u8>[0], offset));
  if (bytes.some((byte) => byte !== 0)) throw new Error(`a new buffer of ${length} bytes holds ${bytes}, not 0`);
}

/** Released, or not even there: a collector is told nothing. */
function bufferCollected(scene: Scene): Attempt {
  const { world } = scene;
  const buffer = subject(scene, "buffer");
  if (buffer === undefined) return { args: [null, world.wrongHandle("buffer")], expect: "ok" };
  return { args: [null, buffer.handle], expect: "ok", done: () => world.remove(buffer) };
}

/** A hold, which is let go again: nobody could tell one that is over from another. */
function bufferHold(scene: Scene): Attempt {
  const { world, native, out } = scene;
  const buffer = subject(scene, "buffer");
  if (buffer === undefined) return { args: [world.wrongHandle("buffer"), out.bytes], expect: "refused" };
  const done = () => {
    if (native.ma_hold_release(null, out.getU64(0) as Pointer) !== 0) throw new Error("a hold was not released");
  };
  return { args: [buffer.handle, out.bytes], expect: "ok", done };
}

function bufferWritten(scene: Scene): Attempt {
  const { world, random } = scene;
  const buffer = subject(scene, "buffer");
  if (buffer === undefined) return { args: [world.wrongHandle("buffer"), 0n, 0n], expect: "refused" };
  if (random.chance(0.2)) {
    const [offset, length] = random.pick<readonly [bigint, bigint]>([
      [BigInt(buffer.length), 1n],
      [0n, BigInt(buffer.length + 1)],
      [2n ** 64n - 1n, 2n],
      [1n, 2n ** 64n - 1n],
    ]);
    return { args: [buffer.handle, offset, length], expect: "refused" };
  }
  const offset = random.below(buffer.length + 1);
  return { args: [buffer.handle, BigInt(offset), BigInt(random.below(buffer.length - offset + 1))], expect: "ok" };
}

/** Any dispatch of a pass, which may have none of that number. */
function passArgumentBytes(scene: Scene): Attempt {
  const { world, random, text, out } = scene;
  const pass = subject(scene, "pass");
  const index = random.chance(0.9) ? random.below(10) : random.u32();
  const [bytes, capacity] = random.chance(0.2) ? [null, 0n] : [text.bytes, BigInt(random.below(text.bytes.length))];
  if (pass === undefined)
    return { args: [world.wrongHandle("pass"), 0, index, bytes, capacity, out.bytes], expect: "refused" };
  const dispatch = random.pick([0, random.below(20), 2 ** 32 - 1]);
  const expect = dispatch === 2 ** 32 - 1 ? "refused" : "any";
  return { args: [pass.handle, dispatch, index, bytes, capacity, out.bytes], expect };
}

/** Names of arguments that no other call has, so that messages stay as they are. */
function nameArguments({ random }: Scene): Attempt {
  const lines = Array.from({ length: random.between(1, 4) }, () =>
    ["ma_fuzz", `argument${random.below(9)}`, "name", "nameWithV"].slice(0, random.between(3, 4)).join(" "),
  );
  const isWrong = random.chance(0.3);
  if (isWrong) lines.splice(random.below(lines.length + 1), 0, random.pick(["one", "one two", "1 2 3 4 5"]));
  return { args: [zeroTerminated(lines.join("\n"))], expect: isWrong ? "refused" : "ok" };
}

function sourceRegister(scene: Scene): Attempt | undefined {
  const { world, random } = scene;
  const device = subject(scene, "device");
  // One that does not compile is tried again whenever a kernel is not found.
  const isInvalid = random.chance(0.02);
  const source = random.pick(isInvalid ? invalidSources : sources);
  const text = Buffer.from(source.text);
  const replaces = !isInvalid && random.chance(0.3);
  const { options, isValid, keep } = sourceOptions(scene, replaces);
  const args = [zeroTerminated(source.name), text, BigInt(text.length), options];
  if (device === undefined) return { args: [world.wrongHandle("device"), ...args], expect: "refused", keep };
  if (!isValid) return { args: [device.handle, ...args], expect: "refused", keep };
  const isKnown = device.sources.has(source.name);
  if (isInvalid && isKnown) return undefined;
  const expect = isInvalid ? "any" : isKnown && !replaces ? "refused" : "ok";
  return { args: [device.handle, ...args], expect, keep, done: () => device.sources.add(source.name) };
}

/** Options of a source, NULL at times, and whether they have to be taken. Macros have names that no source uses. */
function sourceOptions(
  { random, shapes, address }: Scene,
  replaces: boolean,
): { options: Uint8Array<ArrayBuffer> | null; isValid: boolean; keep: Uint8Array<ArrayBuffer>[] } {
  const [shape, macro] = [shapes.get("MASourceOptions"), shapes.get("MAMacro")];
  if (shape === undefined || macro === undefined) throw new Error("the library describes no options of sources");
  if (!replaces && random.chance(0.5)) return { options: null, isValid: true, keep: [] };
  const [name, value] = [zeroTerminated(random.pick(["FUZZ", "_1"])), zeroTerminated(random.pick(["", "1 + 2"]))];
  const macros = macro.pack({ name: address(name), value: address(value) });
  const [languageMajor, languageMinor] = random.pick<readonly [number, number]>([
    [0, 0],
    [2, 4],
    [3, 1],
  ]);
  const fields = {
    macros: address(macros),
    macroCount: 1,
    mathMode: random.below(3),
    languageMajor,
    languageMinor,
    replace: Number(replaces),
    optimizationLevel: random.below(2),
  };
  const wrong = random.pick<Readonly<Record<string, number>>>([
    { mathMode: random.between(3, 2 ** 32 - 1) },
    { languageMajor: 3, languageMinor: random.between(2, 99) },
    { replace: random.between(2, 2 ** 32 - 1) },
    { macroCount: random.between(4097, 2 ** 32 - 1) },
    { macros: 0 },
    { optimizationLevel: random.between(2, 2 ** 32 - 1) },
  ]);
  const isValid = !random.chance(0.2);
  return { options: shape.pack(isValid ? fields : { ...fields, ...wrong }), isValid, keep: [name, value, macros] };
}

/** Of any kernel; with `isBuiltIn`, those of registered sources are unknown. */
function pipelineCreate(scene: Scene, isBuiltIn: boolean): Attempt | undefined {
  const { world, random, shapes, out } = scene;
  const device = subject(scene, "device");
  const kernel = random.pick(kernels);
  const shape = shapes.get("MAConstant");
  if (shape === undefined || (device !== undefined && device.pipelines.length >= limits.pipelines)) return undefined;
  const constants = Buffer.concat(kernel.constants.map((fields) => shape.pack(fields)));
  const call = (handle: number, name: string, bytes: Argument, count: number) =>
    [handle, zeroTerminated(name), bytes, count, out.bytes] as const;
  const count = kernel.constants.length;
  if (device === undefined) {
    return { args: call(world.wrongHandle("device"), kernel.name, constants, count), expect: "refused" };
  }
  if (random.chance(0.01)) return { args: call(device.handle, "no_such_kernel", null, 0), expect: "refused" };
  if (random.chance(0.1))
    return { args: call(device.handle, kernel.name, null, random.between(1, 9)), expect: "refused" };
  if (random.chance(0.1))
    return { args: call(device.handle, kernel.name, constants, random.between(257, 2 ** 32 - 1)), expect: "refused" };
  const done = () => {
    world.add({ kind: "pipeline", handle: handleIn(out), device, kernel: kernel.name });
  };
  if (count > 0 && random.chance(0.02)) {
    const bytes = Uint8Array.from(constants);
    shape.mutate(bytes.subarray(0, shape.size), random);
    return { args: call(device.handle, kernel.name, bytes, count), expect: "any", done };
  }
  const isKnown = kernel.source === undefined || (!isBuiltIn && device.sources.has(kernel.source));
  return { args: call(device.handle, kernel.name, constants, count), expect: isKnown ? "ok" : "refused", done };
}

function passCreate(scene: Scene): Attempt | undefined {
  const { world, random, out } = scene;
  const device = subject(scene, "device");
  const isRecorded = random.chance(0.2);
  const isProfiled = !isRecorded && random.chance(0.2);
  const mode = random.below(2) + (isRecorded ? passCodes.recorded : 0) + (isProfiled ? passCodes.profiled : 0);
  if (device === undefined) return { args: [world.wrongHandle("device"), mode, out.bytes], expect: "refused" };
  if (random.chance(0.05))
    return { args: [device.handle, random.between(8, 2 ** 32 - 1), out.bytes], expect: "refused" };
  if (device.passes.length >= limits.passes) return undefined;
  const recorded = isRecorded ? { recorded: { scalars: [], tensors: [], mayRefuse: false } } : {};
  const state = { committed: false, mayFail: false, mayBeRefused: false, ...recorded };
  const done = () => world.add({ kind: "pass", handle: handleIn(out), device, ...state });
  return { args: [device.handle, mode, out.bytes], expect: "ok", done };
}

function passCommit(scene: Scene): Attempt {
  const pass = subject(scene, "pass");
  if (pass === undefined) return { args: [scene.world.wrongHandle("pass")], expect: "refused" };
  if (pass.committed || pass.recorded !== undefined) return { args: [pass.handle], expect: "refused" };
  const done = () => {
    pass.committed = true;
  };
  return { args: [pass.handle], expect: pass.mayBeRefused ? "any" : "ok", done };
}

function passWait(scene: Scene): Attempt {
  const pass = subject(scene, "pass");
  if (pass === undefined) return { args: [scene.world.wrongHandle("pass")], expect: "refused" };
  if (!pass.committed) return { args: [pass.handle], expect: "refused" };
  return { args: [pass.handle], expect: pass.mayFail ? "any" : "ok" };
}

function layoutRead({ random, shapes, out, text }: Scene): Attempt {
  const shape = shapes.get(random.pick(["MATensor", "AttnParams", "MAPassInfo"]));
  const field = random.pick(["buffer", "Q_strides", "gpuEndTime", "nothing", ""]);
  const length = random.below(400);
  const element = random.chance(0.7) ? 0 : random.u32();
  const names = [zeroTerminated(shape?.name ?? ""), zeroTerminated(field)];
  const results = [out.bytes, out.bytes.subarray(8)];
  const isTooShort = length < (shape?.size ?? 0);
  return {
    args: [...names, element, text.bytes, BigInt(length), ...results],
    expect: isTooShort || field === "nothing" || field === "" ? "refused" : "any",
  };
}

export function handleIn(out: Block): number {
  return out.u32[0] ?? 0;
}

export function zeroTerminated(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}
