import { bindingCodes } from "../../src/ffi/generated/codes.ts";
import { type Attempt, type FuzzedFunction, type Scene, subject } from "./functions.ts";
import { kernels } from "./kernels.ts";
import { type FuzzedOperation, operations } from "./operations.ts";
import type { Random } from "./random.ts";
import type { Fields, StructShape } from "./structs.ts";
import type { LivePass, World } from "./world.ts";

/** `MA_BINDING_USE`, and the bindings that a dispatch has at most: of that kind, and of all. */
const useKind = bindingCodes.use;
const mostUses = 512;
const mostBindings = 62 + mostUses;

/** The functions that encode a dispatch into a pass. */
export const encoders: readonly FuzzedFunction[] = [
  ...operations.map((operation) => ({
    name: operation.name as FuzzedFunction["name"],
    weight: 70,
    pointers: [1],
    attempt: (scene: Scene) => relaxed(scene, encode(scene, operation)),
  })),
  {
    name: "ma_encode_kernel",
    weight: 60,
    pointers: [1],
    attempt: (scene) => relaxed(scene, encodeKernel(scene)),
  },
];

/** A valid call, which may be refused where a number was declared for an argument that it does not have. */
function relaxed({ world }: Scene, attempt: Attempt | undefined): Attempt | undefined {
  const recorded = world.pass(attempt?.args[0])?.recorded;
  if (attempt?.expect !== "ok" || recorded?.mayRefuse !== true) return attempt;
  return { ...attempt, expect: "any" };
}

/** A pass to encode into, now and then a committed one; undefined for a call with a wrong handle. */
function openPass(scene: Scene): LivePass | undefined {
  const pass = subject(scene, "pass");
  if (pass === undefined || !pass.committed || scene.random.chance(0.1)) return pass;
  return scene.random.maybe(pass.device.passes.filter(({ committed }) => !committed)) ?? pass;
}

function encode(scene: Scene, operation: FuzzedOperation): Attempt | undefined {
  const { world, random, shapes } = scene;
  const shape = shapes.get(operation.struct);
  if (shape === undefined) throw new Error(`the library does not describe ${operation.struct}`);
  const pass = openPass(scene);
  const model = pass ?? world.any("pass");
  const fields = model && operation.valid?.(model, random);
  if (pass === undefined || pass.committed) {
    const handle = pass?.handle ?? world.wrongHandle("pass");
    return { args: [handle, shape.pack(fields ?? {})], expect: "refused" };
  }
  const done = () => {
    pass.mayFail = true;
    pass.mayBeRefused = true;
  };
  if (fields === undefined || random.chance(0.02)) {
    const bytes = shape.pack(fields ?? plausible(shape, world, random));
    if (random.chance(0.5)) shape.scramble(bytes, random);
    return { args: [pass.handle, bytes], expect: "any", done };
  }
  const choice = random.below(10);
  if (choice === 0)
    return {
      args: [pass.handle, shape.pack({ ...fields, ...spoiled(fields, pass, world, random) })],
      expect: "refused",
    };
  if (choice === 1 && operation.refused !== undefined) {
    const [path, value] = random.maybe(operation.refused) ?? ["", 0];
    return { args: [pass.handle, shape.pack({ ...fields, [path]: value })], expect: "refused" };
  }
  const bytes = shape.pack(fields);
  if (choice > 2 && operation.mayBeRefused?.(fields) !== true) return { args: [pass.handle, bytes], expect: "ok" };
  if (choice > 2) {
    const done = () => {
      pass.mayBeRefused = true;
    };
    return { args: [pass.handle, bytes], expect: "any", done };
  }
  shape.mutate(bytes, random);
  return { args: [pass.handle, bytes], expect: "any", done };
}

/** One tensor of a valid call, made wrong. */
function spoiled(fields: Fields, pass: LivePass, world: World, random: Random): Fields {
  const names = Object.keys(fields).filter((path) => path.endsWith(".buffer"));
  const name = (random.maybe(names) ?? "").replace(/\.buffer$/, "");
  const length = pass.device.buffers.find(({ handle }) => handle === fields[`${name}.buffer`])?.length ?? 0;
  const foreign = world.devices.filter((device) => device !== pass.device).flatMap(({ buffers }) => buffers);
  return random.pick<Fields>([
    { [`${name}.buffer`]: world.wrongHandle("buffer") },
    { [`${name}.buffer`]: random.maybe(foreign)?.handle ?? 0 },
    { [`${name}.dtype`]: random.pick([0, random.between(13, 2 ** 32 - 1)]) },
    { [`${name}.length`]: random.pick<number | bigint>([0, length + 1, 2n ** 64n - 1n]) },
    { [`${name}.offset`]: random.pick<number | bigint>([length + 1, 2n ** 63n, 2n ** 64n - 8n]) },
  ]);
}

/** Fields of a struct for which there is no valid call: real buffers, small numbers. */
function plausible(shape: StructShape, world: World, random: Random): Fields {
  const fields: Record<string, number | bigint> = {};
  for (const path of shape.paths) {
    fields[path] = random.between(0, 64);
    if (path.endsWith(".buffer")) fields[path] = world.any("buffer")?.handle ?? 0;
    if (path.endsWith(".dtype")) fields[path] = random.between(1, 12);
    if (path.endsWith(".offset")) fields[path] = 0;
    if (path.endsWith(".length")) fields[path] = random.between(0, 4096);
    if (shape.isPointer(path)) fields[path] = 0;
  }
  return fields;
}

/** A dispatch of a kernel by its pipeline. The kernels are safe with any bindings; see kernels.ts. */
function encodeKernel(scene: Scene): Attempt | undefined {
  const { world, random, shapes } = scene;
  const [dispatchShape, bindingShape] = [shapes.get("MAKernelDispatch"), shapes.get("MABinding")];
  const pass = openPass(scene);
  if (dispatchShape === undefined || bindingShape === undefined) throw new Error("the library describes no dispatch");
  const pipeline = random.maybe(pass?.device.pipelines.filter(({ kernel }) => kernel.startsWith("fuzz_")) ?? []);
  const buffer = random.maybe(pass?.device.buffers.filter(({ length }) => length >= 4) ?? []);
  const isValid = pipeline !== undefined && buffer !== undefined;

  const value = new Uint8Array(new Float32Array([1]).buffer);
  const bindings: Uint8Array<ArrayBuffer>[] = [
    bindingShape.pack({ index: 0, kind: 0, buffer: buffer?.handle ?? 0, access: 3, length: 4 }),
    bindingShape.pack({ index: 1, kind: 1, length: 4, bytes: scene.address(value) }),
    bindingShape.pack({ index: 0, kind: 2, length: 16 }),
  ];
  const taken = kernels.find(({ name }) => name === pipeline?.kernel)?.bindings ?? bindings.length;
  const list = new Uint8Array(Buffer.concat(bindings));
  const fields = {
    pipeline: pipeline?.handle ?? world.wrongHandle("pipeline"),
    form: random.below(2),
    "grid[0]": random.between(1, 8),
    "grid[1]": random.between(1, 3),
    "grid[2]": 1,
    "threadsPerThreadgroup[0]": random.between(1, 64),
    "threadsPerThreadgroup[1]": 1,
    "threadsPerThreadgroup[2]": 1,
    bindingCount: taken,
    bindings: scene.address(list),
  };
  const call = (handle: number, changes: Fields, expect: Attempt["expect"], done?: () => void): Attempt => ({
    args: [handle, dispatchShape.pack({ ...fields, ...changes })],
    expect,
    keep: [value, list],
    ...(done === undefined ? {} : { done }),
  });
  if (pass === undefined) return call(world.wrongHandle("pass"), {}, "refused");
  if (pass.committed || !isValid) return call(pass.handle, {}, "refused");
  const done = () => {
    pass.mayFail = true;
  };
  // More threads than the device can run in its time limit.
  if (random.chance(1e-5)) return call(pass.handle, { form: 1, "grid[0]": 2 ** 32 - 1, "grid[1]": 64 }, "any", done);
  switch (random.below(10)) {
    case 0:
      return call(
        pass.handle,
        random.pick<Fields>([
          { pipeline: world.wrongHandle("pipeline") },
          { form: random.between(2, 2 ** 32 - 1) },
          { [`grid[${random.below(3)}]`]: 0 },
          { [`threadsPerThreadgroup[${random.below(3)}]`]: random.pick([0, 1025, 2 ** 32 - 1]) },
          { bindingCount: random.between(mostBindings + 1, 2 ** 32 - 1) },
          { bindings: 0 },
        ]),
        "refused",
      );
    case 1: {
      // Too few arguments, or too many.
      const others = bindings
        .map((_, count) => count)
        .concat(bindings.length)
        .filter((count) => count !== taken);
      return call(pass.handle, { bindingCount: random.maybe(others) ?? 0 }, "refused");
    }
    case 2:
      // Access that the kernel's own type contradicts.
      list.set(bindingShape.pack({ index: 0, kind: 0, buffer: buffer.handle, access: 1, length: 4 }));
      return call(pass.handle, {}, "refused");
    case 3:
      bindingShape.mutate(list.subarray(0, bindingShape.size), random);
      return call(pass.handle, {}, "any", done);
    case 4:
    case 5: {
      const [uses, expect] = usesOf(pass, bindingShape, scene);
      const own = bindings.slice(0, taken);
      const all = random.chance(0.5) ? [...own, ...uses] : [...uses, ...own];
      const longer = new Uint8Array(Buffer.concat(all));
      const changes = { bindingCount: all.length, bindings: scene.address(longer) };
      return { ...call(pass.handle, changes, expect), keep: [value, longer] };
    }
    default:
      return call(pass.handle, {}, "ok");
  }
}

/** Bindings of buffers that a kernel would reach by an address, and whether a dispatch with them is taken. */
function usesOf(
  pass: LivePass,
  shape: StructShape,
  { world, random }: Scene,
): [uses: Uint8Array<ArrayBuffer>[], expect: Attempt["expect"]] {
  const wrong = random.chance(0.3);
  const count = random.pick([1, 2, 9, mostUses]);
  const spoiled = wrong ? random.below(count) : count;
  const foreign = world.devices.filter((device) => device !== pass.device).flatMap(({ buffers }) => buffers);
  const uses = Array.from({ length: count }, (_, index) => {
    const buffer = random.maybe(pass.device.buffers.filter(({ length }) => length >= 4));
    const length = buffer?.length ?? 0;
    const offset = random.below(Math.min(length, 2 ** 20));
    const right: Fields = {
      index,
      kind: useKind,
      buffer: buffer?.handle ?? 0,
      access: random.between(1, 3),
      offset,
      length: random.between(1, Math.min(length - offset, 2 ** 20)),
    };
    if (index !== spoiled) return shape.pack(right);
    const mistake = random.pick<Fields>([
      { buffer: world.wrongHandle("buffer") },
      { buffer: random.maybe(foreign)?.handle ?? 0 },
      { access: random.pick([0, 4, 2 ** 32 - 1]) },
      { length: random.pick<number | bigint>([0, length - offset + 1, 2n ** 64n - 1n]) },
      { offset: random.pick<number | bigint>([length, length + 1, 2n ** 63n, 2n ** 64n - 1n]) },
      { index: random.between(mostUses, 2 ** 32 - 1) },
      { kind: random.between(useKind + 1, 2 ** 32 - 1) },
    ]);
    return shape.pack({ ...right, ...mistake });
  });
  return [uses, wrong ? "refused" : "ok"];
}
