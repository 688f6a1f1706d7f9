import { appendBenchmarks } from "./append.ts";
import { awaitBenchmarks } from "./await-latency.ts";
import type { Benchmark } from "./benchmark.ts";
import { cacheStep } from "./cache-step.ts";
import { copyF32 } from "./copy-f32.ts";
import { copySeqF32F16 } from "./copy-seq-f32-f16.ts";
import { decodeBenchmarks } from "./decode.ts";
import { dispatchBenchmarks } from "./dispatch-host-cost.ts";
import { loadToFirstResult } from "./load-to-first-result.ts";
import { mmaElementStyle, mmaMatrixStyle } from "./matrix-products.ts";
import { opHostCost } from "./op-host-cost.ts";
import { plainLoop } from "./plain-loop.ts";
import { prefillOneThread } from "./prefill-1t.ts";
import { prefillTwoThreads } from "./prefill-2t.ts";
import { prefillHeadDims } from "./prefill-head-dims.ts";
import { prefillCodes } from "./prefill-k8v4.ts";
import { prefillWindows } from "./prefill-window.ts";
import { quantizeBenchmarks } from "./quantize.ts";
import { recordedSteps } from "./recorded-step.ts";
import { ropeBenchmarks } from "./rope.ts";
import { shaderCold } from "./shader-cold.ts";
import { shaderLargeSources } from "./shader-large.ts";
import { shaderWarm } from "./shader-warm.ts";
import { simdgroupLoops } from "./simdgroup-loops.ts";
import { barrier256, simdSum } from "./synchronisation.ts";
import { tinyDispatches } from "./tiny-dispatch.ts";

/** Every benchmark, in the order of the report. */
export const benchmarks: readonly Benchmark[] = [
  opHostCost,
  ...dispatchBenchmarks,
  ...recordedSteps,
  cacheStep,
  ...awaitBenchmarks,
  copyF32,
  copySeqF32F16,
  ...quantizeBenchmarks,
  ...ropeBenchmarks,
  ...appendBenchmarks,
  prefillOneThread,
  prefillTwoThreads,
  ...prefillHeadDims,
  ...prefillWindows,
  ...prefillCodes,
  ...decodeBenchmarks,
  shaderCold,
  shaderWarm,
  ...shaderLargeSources,
  loadToFirstResult,
  barrier256,
  simdSum,
  mmaMatrixStyle,
  mmaElementStyle,
  ...simdgroupLoops,
  plainLoop,
  ...tinyDispatches,
];
