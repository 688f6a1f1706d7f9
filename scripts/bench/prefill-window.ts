import { buildSlidingWindowMask, classifyMaskTiles, flashAttnPrefill } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf } from "./benchmark.ts";
import { promptTensors } from "./prefill.ts";

const [tokens, headDim, window] = [4096, 64, 256];

/** The ways to a window: as an option, as a mask with tile classes, their making included, and as the mask alone. */
type Way = "option" | "classes" | "mask";

/** Milliseconds of each way, two heads (one in a quick run). */
function prepareWays(quick: boolean) {
  const heads = quick ? 1 : 2;
  const device = openWithThreads(1);
  const problem = promptTensors(device, { tokens, heads, headDim });
  const mask = device.tensor("bool", [tokens, tokens]);
  using building = device.pass();
  buildSlidingWindowMask(building, { mask, window });
  building.commitAndWait();
  const milliseconds = (way: Way) =>
    1000 *
    secondsOf(() => {
      using pass = device.pass();
      if (way === "option") {
        flashAttnPrefill(pass, { ...problem, causal: true, window });
      } else if (way === "classes") {
        using tileClasses = classifyMaskTiles(pass, { mask, headDim });
        flashAttnPrefill(pass, { ...problem, mask, tileClasses });
      } else {
        flashAttnPrefill(pass, { ...problem, mask });
      }
      pass.commitAndWait();
    });
  return { milliseconds, dispose: () => device.dispose() };
}

const about = `flashAttnPrefill, bf16, D = ${headDim}, 2 heads (1 in a quick run), a window of ${window} in 4,096 tokens, one thread`;

/** A sliding window with tile classes, their making included, beside the same mask without. */
const tileClasses: Benchmark = {
  name: "prefill-window-tile-classes",
  unit: "ms",
  about: `${about}, by a bool mask with tile classes made and used`,
  baselineAbout: "the same mask without tile classes",
  target: { text: "at most a sixth of it", met: (_, ratio) => ratio <= 1 / 6 },
  rounds: ({ quick }) => (quick ? 3 : 9),
  warmUp: true,
  prepare({ quick }) {
    const { milliseconds, dispose } = prepareWays(quick);
    return { measure: () => milliseconds("classes"), baseline: () => milliseconds("mask"), dispose };
  },
};

/** The window as an argument, beside the mask with tile classes. */
const withoutMask: Benchmark = {
  name: "prefill-window",
  unit: "ms",
  about: `${about}, by its window argument`,
  baselineAbout: "the same by a bool mask with tile classes made and used",
  target: { text: "at most as long", met: (_, ratio) => ratio <= 1 },
  rounds: ({ quick }) => (quick ? 3 : 9),
  warmUp: true,
  prepare({ quick }) {
    const { milliseconds, dispose } = prepareWays(quick);
    return { measure: () => milliseconds("option"), baseline: () => milliseconds("classes"), dispose };
  },
};

/** Windows of a prompt. */
export const prefillWindows: readonly Benchmark[] = [tileClasses, withoutMask];
