import { dlopen, read } from "bun:ffi";
import type { Block } from "../../src/ffi/block.ts";
import { type Attempt, type FuzzedFunction, handleIn, type Scene, subject, zeroTerminated } from "./functions.ts";
import type { LivePass } from "./world.ts";

const { close } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
  close: { args: ["i32"], returns: "i32" },
}).symbols;

const mostPasses = 6;
const mostBuffers = 16;

/** Events, recorded passes, and memory that devices share. */
export const sharedFunctions: readonly FuzzedFunction[] = [
  { name: "ma_device_events", weight: 1, pointers: [1], attempt: deviceEvents },
  { name: "ma_pass_commit_notify", weight: 6, attempt: passCommitNotify },
  { name: "ma_buffer_share", weight: 10, pointers: [1, 2], attempt: bufferShare },
  { name: "ma_buffer_adopt", weight: 10, pointers: [4, 5], attempt: bufferAdopt },
  { name: "ma_record_scalar", weight: 4, pointers: [1, 4], attempt: recordScalar },
  { name: "ma_record_use", weight: 6, attempt: recordUse },
  { name: "ma_record_tensor", weight: 4, pointers: [1, 2, 3], attempt: recordTensor },
  { name: "ma_record_run", weight: 12, pointers: [1, 2], attempt: recordRun },
];

function deviceEvents(scene: Scene): Attempt {
  const { world, out } = scene;
  const device = subject(scene, "device");
  if (device === undefined) return { args: [world.wrongHandle("device"), out.bytes], expect: "refused" };
  const done = () => {
    device.hasEvents = true;
    // Signals that nobody reads any more must not hurt.
    close(handleIn(out));
  };
  return { args: [device.handle, out.bytes], expect: device.hasEvents ? "refused" : "ok", done };
}

function passCommitNotify(scene: Scene): Attempt {
  const pass = subject(scene, "pass");
  if (pass === undefined) return { args: [scene.world.wrongHandle("pass")], expect: "refused" };
  if (pass.committed || pass.recorded !== undefined || !pass.device.hasEvents) {
    return { args: [pass.handle], expect: "refused" };
  }
  const done = () => {
    pass.committed = true;
  };
  return { args: [pass.handle], expect: pass.mayBeRefused ? "any" : "ok", done };
}

function bufferShare(scene: Scene): Attempt {
  const { world, out } = scene;
  const buffer = subject(scene, "buffer");
  const results = [out.bytes, out.bytes.subarray(8)];
  if (buffer === undefined) return { args: [world.wrongHandle("buffer"), ...results], expect: "refused" };
  return { args: [buffer.handle, ...results], expect: buffer.isPrivate ? "refused" : "ok" };
}

/** Adopts a buffer of any device in any other, the same one included, and writes through the new one. */
function bufferAdopt(scene: Scene): Attempt | undefined {
  const { native, world, random, out } = scene;
  const [device, shared] = [subject(scene, "device"), world.any("buffer")];
  if (shared === undefined || (device !== undefined && device.buffers.length >= mostBuffers)) return undefined;
  native.ma_buffer_share(shared.handle, out.bytes, out.bytes.subarray(8));
  const [processNumber, number] = [BigInt(out.getU64(0)), BigInt(out.getU64(2))];
  const results = [out.bytes, out.bytes.subarray(8)];
  const handle = device?.handle ?? world.wrongHandle("device");
  if (device === undefined || random.chance(0.2)) {
    const wrong = random.pick([
      [world.wrongHandle("buffer"), processNumber, number],
      [shared.handle, processNumber ^ 1n, number],
      [shared.handle, processNumber, number + 1n],
    ] as const);
    return { args: [handle, ...wrong, ...results], expect: "refused" };
  }
  const done = () => {
    world.add({ kind: "buffer", handle: handleIn(out), device, length: shared.length, isPrivate: false });
    // Its memory has as many bytes.
    read.u8(out.getU64(2) as Parameters<typeof read.u8>[0], shared.length - 1);
  };
  const expect = shared.isPrivate ? "refused" : "ok";
  return { args: [handle, shared.handle, processNumber, number, ...results], expect, done };
}

/** A recorded pass; now and then one that is not, or none. */
function recordedPass(scene: Scene): { pass: LivePass | undefined; handle: number } {
  const { random, world } = scene;
  const pass = subject(scene, "pass");
  const recorded = pass?.device.passes.filter((each) => each.recorded !== undefined) ?? [];
  const chosen = random.chance(0.9) ? random.maybe(recorded) : pass;
  return {
    pass: chosen?.recorded === undefined ? undefined : chosen,
    handle: chosen?.handle ?? world.wrongHandle("pass"),
  };
}

function recordScalar(scene: Scene): Attempt {
  const { random, out } = scene;
  const { pass, handle } = recordedPass(scene);
  const [a, b] = [random.below(20), random.below(20)];
  const call = (name: string, least: number, most: number) => [handle, zeroTerminated(name), least, most, out.bytes];
  if (pass?.recorded === undefined) return { args: call("name", 0, 1), expect: "refused" };
  const { recorded } = pass;
  if (random.chance(0.2)) return { args: call(random.pick(["", "taken"]), 5, 4), expect: "refused" };
  const done = () => recorded.scalars.push([Math.min(a, b), Math.max(a, b)]);
  return { args: call(`scalar${recorded.scalars.length}`, Math.min(a, b), Math.max(a, b)), expect: "ok", done };
}

function recordUse(scene: Scene): Attempt {
  const { random } = scene;
  const { pass, handle } = recordedPass(scene);
  const argument = zeroTerminated(random.pick(["writePos", "seqPos", "n_tokens", "kL", "bytes[1]", "nothing"]));
  if (pass?.recorded === undefined) return { args: [handle, 0, argument], expect: "refused" };
  const { recorded } = pass;
  if (random.chance(0.3))
    return {
      args: [handle, random.u32(), null],
      expect: "ok",
      done: () => {
        recorded.mayRefuse = false;
      },
    };
  const count = recorded.scalars.length;
  const scalar = random.chance(0.8) ? random.below(Math.max(1, count)) : random.u32();
  const done = () => {
    recorded.mayRefuse = true;
  };
  return { args: [handle, scalar, argument], expect: scalar < count ? "ok" : "refused", done };
}

function recordTensor(scene: Scene): Attempt | undefined {
  const { random, shapes, out } = scene;
  const { pass, handle } = recordedPass(scene);
  const shape = shapes.get("MATensor");
  if (shape === undefined) throw new Error("the library does not describe MATensor");
  const call = (fields: Parameters<typeof shape.pack>[0], name: string) =>
    [handle, zeroTerminated(name), shape.pack(fields), out.bytes] as const;
  if (pass?.recorded === undefined) return { args: call({}, "tensor"), expect: "refused" };
  const { recorded } = pass;
  const buffer = random.maybe(pass.device.buffers);
  if (buffer === undefined) return undefined;
  const fields = { buffer: buffer.handle, dtype: 1, offset: 0, length: buffer.length };
  if (random.chance(0.2)) return { args: call({ ...fields, length: buffer.length + 1 }, "tensor"), expect: "refused" };
  const done = () => recorded.tensors.push(fields);
  return { args: call(fields, `tensor${recorded.tensors.length}`), expect: "ok", done };
}

/** A run, which what was recorded may refuse: its buffers may be gone, or its numbers not suit them. */
function recordRun(scene: Scene): Attempt | undefined {
  const { world, random, shapes, out, address } = scene;
  const { pass, handle } = recordedPass(scene);
  const [runShape, tensorShape] = [shapes.get("MARun"), shapes.get("MATensor")];
  if (runShape === undefined || tensorShape === undefined) throw new Error("the library does not describe MARun");
  if (pass?.recorded === undefined) return { args: [handle, runShape.pack({}), out.bytes], expect: "refused" };
  if (pass.device.passes.length >= mostPasses) return undefined;
  const { scalars, tensors } = pass.recorded;
  const numbers = Uint32Array.from(scalars, ([least, most]) => random.between(least, most));
  const buffer = random.maybe(pass.device.buffers);
  const other = buffer === undefined ? {} : { buffer: buffer.handle, dtype: 1, offset: 0, length: buffer.length };
  const replaced = tensors.map(() => tensorShape.pack(random.chance(0.5) ? {} : other));
  const [numberBytes, tensorBytes] = [new Uint8Array(numbers.buffer), new Uint8Array(Buffer.concat(replaced))];
  const fields = {
    scalars: scalars.length === 0 ? 0 : address(numberBytes),
    tensors: tensors.length === 0 ? 0 : address(tensorBytes),
    scalarCount: scalars.length,
    tensorCount: tensors.length,
    notify: pass.device.hasEvents ? random.below(2) : 0,
  };
  const keep = [numberBytes, tensorBytes];
  if (random.chance(0.2)) {
    const spoiled = random.pick<object>([
      { scalarCount: scalars.length + 1 },
      { tensorCount: 2 ** 32 - 1 },
      { notify: 2 },
      ...(pass.device.hasEvents ? [] : [{ notify: 1 }]),
    ]);
    return { args: [handle, runShape.pack({ ...fields, ...spoiled }), out.bytes], expect: "refused", keep };
  }
  const done = () =>
    world.add({
      kind: "pass",
      handle: handleIn(out as Block),
      device: pass.device,
      committed: true,
      mayFail: true,
      mayBeRefused: false,
    });
  return { args: [handle, runShape.pack(fields), out.bytes], expect: "any", keep, done };
}
