import { afterAll, expect } from "bun:test";
import { Pass } from "../../src/device/pass.ts";
import {
  type AppendRope,
  applyRope,
  Device,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  type Tensor,
} from "../../src/index.ts";
import { argumentBytes } from "../helpers/abi.ts";
import { normalDraws } from "../helpers/random.ts";
import { type Mistake, oneMistake, plant } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted where K turns on its way into codes: the bytes of applyRope and the encoding of that must show them.

const device = Device.open();
afterAll(() => device.dispose());

const [heads, tokens, capacity, start] = [5, 3, 8, 4];

interface Scene {
  readonly headDim: number;
  readonly rope: AppendRope;
}

/** Each way of turning: in the quad, in the lane, and from memory, of all coordinates or of a part. */
const scenes: readonly Scene[] = [
  { headDim: 64, rope: { theta: 10_000, pairing: "interleaved", attentionScale: 1.25, offset: 3 } },
  { headDim: 64, rope: { theta: 10_000, pairing: "interleaved", rotaryDim: 34 } },
  { headDim: 64, rope: { theta: 10_000, pairing: "half", attentionScale: 1.25, offset: 3 } },
  { headDim: 64, rope: { theta: 10_000, pairing: "half", rotaryDim: 20 } },
  { headDim: 96, rope: { theta: 10_000, pairing: "half" } },
];

/** Codes of K and V, by kernels changed by the patches of a mistake. */
function encoded({ headDim, rope }: Scene, mistake: Mistake | undefined, isFused: boolean): number[] {
  const { bytesPerRow } = kvCacheBytes({ headDim, nKvHeads: heads, capacity, bits: 4 });
  const draw = normalDraws(7);
  const stream = () => ({
    src: device
      .tensor("f32", [tokens, heads, headDim])
      .set(Float32Array.from({ length: tokens * heads * headDim }, draw)),
    // Room behind the cache, so that a mistake writes inside.
    packed: device.tensor("u8", [2 * heads, capacity, bytesPerRow]).slice(0, heads),
    norms: device.tensor("f32", [2 * heads, capacity, 1]).slice(0, heads),
  });
  const [k, v] = [stream(), stream()];
  const bytes = () => [k, v].flatMap(({ packed, norms }) => [...packed.view(), ...norms.view()]);
  const call = { k, v, bits: 4, writePosStart: start } as const;
  if (!isFused) {
    const { offset = 0, ...angles } = rope;
    using pass = device.pass();
    applyRope(pass, { x: k.src, layout: "sequence-major", start: start + offset, ...angles } as never);
    hadamardQuantizeKvSeq(pass, call);
    pass.commitAndWait();
    return bytes();
  }
  // The grid, the parameters and the frequencies are those of the call.
  using described = device.pass();
  hadamardQuantizeKvSeq(described, { ...call, rope });
  const [dispatch] = described.describe();
  if (dispatch === undefined) throw new Error("nothing was encoded");
  const { native, handle } = Pass.use(described);
  const flags = [true, true, rope.pairing === "interleaved", rope.pairing === "half" && rope.rotaryDim === undefined];
  const kernel = plant(device, "hadamard_quantize_kv_seq.metal", dispatch.kernel, mistake?.patches ?? []);
  const pipeline = device.pipeline(kernel, {
    constants: [
      ...flags.map((value, i) => ({ index: 2 + i, dtype: "bool", value }) as const),
      { index: 6, dtype: "u32", value: 1 },
    ],
  });
  const read = (tensor: Tensor) => ({ tensor, access: "read" }) as const;
  using pass = device.pass();
  pass.dispatch(pipeline, {
    buffers: {
      ...{ 0: read(k.src), 1: k.packed, 2: k.norms, 4: read(v.src), 5: v.packed, 6: v.norms },
      // Neither positions nor a block table are read.
      ...{ 7: read(k.src), 8: read(k.src) },
    },
    bytes: { 3: argumentBytes(native, handle, 0, 3), 9: argumentBytes(native, handle, 0, 9) },
    form: "threads",
    grid: dispatch.grid,
    threads: dispatch.threadsPerThreadgroup,
  });
  pass.commitAndWait();
  return bytes();
}

/** Whether all scenes give what turning before gives. */
function isRight(mistake?: Mistake): boolean {
  return scenes.every((scene) => Bun.deepEquals(encoded(scene, mistake, true), encoded(scene, undefined, false)));
}

const mistakes: readonly Mistake[] = [
  oneMistake("V turns", /does_turn = !at\.stream\.is_v/, "does_turn = true"),
  oneMistake("nothing turns", /does_turn = !at\.stream\.is_v/, "does_turn = false"),
  oneMistake("no offset", / \+ params\.ropeOffset/, ""),
  oneMistake("no scale", /half_dim - 1\), scale\)/, "half_dim - 1), 1.0f)"),
  oneMistake("one frequency for all", /min\(pair, half_dim - 1\)/, "0"),
  oneMistake("what does not turn shrinks", /: float2\(1\.0f, 0\.0f\)/, ": float2(0.0f, 0.0f)"),
  oneMistake(
    "neighbours the other way",
    /float4\(-first\.y, first\.y, -second\.y/,
    "float4(first.y, -first.y, -second.y",
  ),
  oneMistake(
    "the second pair by the first's angle",
    /float4\(first\.x, first\.x, second\.x/,
    "float4(first.x, first.x, first.x",
  ),
  oneMistake("halves the other way", /sines\[i\]\[j\] = -angle\.y;/, "sines[i][j] = angle.y;"),
  oneMistake("both halves to one side", /sines\[i \+ half_count\] = -sines/, "sines[i + half_count] = sines"),
  oneMistake("out of memory the other way", /is_first \? -angle\.y : angle\.y/, "is_first ? angle.y : -angle.y"),
  oneMistake(
    "the angle of a coordinate, not of its pair",
    /is_first \? coordinate : coordinate - half_dim\)/,
    "coordinate)",
  ),
  oneMistake("the other of the lane's first quad", /\(i \+ Q::count \/ 2\) % Q::count/, "0"),
  oneMistake("neighbours not exchanged", /quads\[i\]\.yxwz/, "quads[i]"),
  oneMistake("halves a coordinate off", /\? coordinate \+ half_dim/, "? coordinate + half_dim - 1"),
  oneMistake("quads that are turned already", /turned\[i\] = fma/, "turned[i] = quads[i] = fma"),
  oneMistake("the head of the group's first", /\.at\(source_row \+ head,/, ".at(source_row,"),
  oneMistake("heads of the cache as close as tokens", /head \* rows_of_head\(params\)/, "head"),
  oneMistake("a head of a group left out", /head < count; head\+\+/, "head + 1 < count; head++"),
  oneMistake("a group's first head", /row % groups \* heads/, "row % groups"),
];

testTable("the kernel as it is", [{ name: "pass" }], () => expect(isRight()).toBe(true));
testTable("the bytes show", mistakes, (mistake) => expect(isRight(mistake)).toBe(false));
