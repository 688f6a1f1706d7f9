import type { Device, Pass, Pipeline, Tensor } from "../../src/index.ts";

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void spin(device uint *out [[buffer(0)]], constant uint &turns [[buffer(1)]]) {
  uint x = 1;
  for (uint i = 0; i < turns; ++i) x = x * 1664525u + 1013904223u;
  out[0] = x;
}
`;

/** Dispatches that take a chosen time on the device. */
export class Spin {
  readonly #pipeline: Pipeline;
  readonly #out: Tensor<"u32">;
  readonly #turnsPerSecond: number;

  constructor(readonly device: Device) {
    device.registerSource("spin.metal", source);
    this.#pipeline = device.pipeline("spin");
    this.#out = device.tensor("u32", [1]);
    const turns = 4_000_000;
    const times = Array.from({ length: 5 }, () => {
      using pass = device.pass();
      this.#encode(pass, turns);
      pass.commitAndWait();
      return pass.info.gpuTime;
    });
    this.#turnsPerSecond = turns / Math.min(...times);
  }

  /** Encodes a dispatch of `seconds`, or somewhat more where the machine is busy. */
  encode(pass: Pass, seconds: number): void {
    this.#encode(pass, Math.max(1, Math.round(seconds * this.#turnsPerSecond)));
  }

  /** A pass of `seconds`. */
  pass(seconds: number): Pass {
    const pass = this.device.pass();
    this.encode(pass, seconds);
    return pass;
  }

  #encode(pass: Pass, turns: number): void {
    pass.dispatch(this.#pipeline, { buffers: [this.#out], bytes: { 1: Uint32Array.of(turns) }, grid: 1, threads: 1 });
  }
}
