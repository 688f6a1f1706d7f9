import type { Device, Pipeline, Tensor } from "../../src/index.ts";
import type { CallName } from "./hadamardCalls.ts";
import type { TestCache } from "./quantized.ts";
import { plant, type ShaderPatch } from "./shaders.ts";

/** The shader files. */
const files: Readonly<Record<CallName, string>> = {
  token: "hadamard_quantize_kv",
  tokens: "hadamard_quantize_kv_seq",
  decode: "hadamard_dequantize_kv",
};

/** Runs 4-bit kernels for one head size, from shaders as they are or with a mistake. */
export class EditedHadamard {
  readonly #device: Device;
  /** Kernels without a mistake. */
  readonly #unchanged = new Map<string, Pipeline>();

  constructor(device: Device) {
    this.#device = device;
  }

  /** The pipeline of a kernel from a shader changed by `patch`. */
  #pipeline(patch: ShaderPatch | undefined, call: CallName, kernel: string): Pipeline {
    const known = patch === undefined ? this.#unchanged.get(kernel) : undefined;
    if (known !== undefined) return known;
    const patches = patch === undefined ? [] : [patch];
    const planted = plant(this.#device, `${files[call]}.metal`, kernel, patches);
    // The caches begin at any byte; rows do not turn.
    const constants = [2, 3, 4, 5].map((index) => ({ index, dtype: "bool", value: false }) as const);
    const ofFloats = { index: 6, dtype: "u32", value: 1 } as const;
    const pipeline = this.#device.pipeline(planted, { constants: [...constants, ofFloats] });
    if (patch === undefined) this.#unchanged.set(kernel, pipeline);
    return pipeline;
  }

  /** Encodes `vectors` into, or decodes them from, `nTokens` positions of a cache from `start` on. */
  run(
    patch: ShaderPatch | undefined,
    call: CallName,
    cache: TestCache,
    vectors: Tensor<"f32">,
    start: number,
    nTokens: number,
  ): void {
    const { headDim, nKvHeads, capacity, isSliding } = cache.plan;
    const pipeline = this.#pipeline(patch, call, `${files[call]}_fast_d${headDim}`);
    const lanes = headDim === 512 ? 16 : headDim % 32 === 0 ? 8 : 4;
    const rows = call === "token" ? nKvHeads : nKvHeads * nTokens;
    const { packed, norms } = cache;
    using pass = this.#device.pass();
    for (let token = 0; token < (call === "token" ? nTokens : 1); token++) {
      const rest = { token: [0], tokens: [4, nTokens, 0, nTokens, ...Array(9).fill(0)], decode: [4, nTokens, 1] }[call];
      const params = new Uint32Array([headDim, nKvHeads, start + token, capacity, isSliding ? 1 : 0, 0, ...rest]);
      new Float32Array(params.buffer)[5] = 1;
      const source = call === "token" ? vectors.slice(token, token + 1) : vectors;
      const stream =
        call === "decode"
          ? ([{ tensor: packed, access: "read" }, { tensor: norms, access: "read" }, vectors] as const)
          : ([{ tensor: source, access: "read" }, packed, norms] as const);
      const [first, second, third] = stream;
      const v = call === "token" ? 5 : 4;
      pass.dispatch(pipeline, {
        buffers: {
          0: first,
          1: second,
          2: third,
          ...(call === "token" ? { 4: norms } : {}),
          [v]: first,
          [v + 1]: second,
          [v + 2]: third,
          // Neither positions nor a block table are read.
          ...(call === "tokens" ? { 7: norms, 8: norms } : {}),
        },
        bytes: { 3: params },
        // Whole threadgroups, so that the last one has threads without a row.
        form: "threadgroups",
        grid: [Math.ceil((rows * lanes) / 64)],
        threads: [64],
      });
    }
    pass.commitAndWait();
  }
}
