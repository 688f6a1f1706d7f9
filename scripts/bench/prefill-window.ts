import { buildSlidingWindowMask, classifyMaskTiles, flashAttnPrefill } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf } from "./benchmark.ts";
import { promptTensors } from "./prefill.ts";

const [tokens, headDim, window] = [4096, 64, 256];

/** A sliding window with tile classes, their making included, beside the same mask without. */
export const prefillWindow: Benchmark = {
  name: "prefill-window-tile-classes",
  unit: "ms",
  about: `flashAttnPrefill, bf16, D = ${headDim}, 2 heads (1 in a quick run), a bool mask with a window of ${window} in 4,096 tokens, one thread, tile classes made and used`,
  baselineAbout: "the same mask without tile classes",
  target: { text: "at most a sixth of it", met: (_, ratio) => ratio <= 1 / 6 },
  rounds: ({ quick }) => (quick ? 3 : 9),
  warmUp: true,
  prepare({ quick }) {
    const heads = quick ? 1 : 2;
    const device = openWithThreads(1);
    const problem = promptTensors(device, { tokens, heads, headDim });
    const mask = device.tensor("bool", [tokens, tokens]);
    using building = device.pass();
    buildSlidingWindowMask(building, { mask, window });
    building.commitAndWait();
    const milliseconds = (withClasses: boolean) =>
      1000 *
      secondsOf(() => {
        using pass = device.pass();
        if (withClasses) {
          using tileClasses = classifyMaskTiles(pass, { mask, headDim });
          flashAttnPrefill(pass, { ...problem, mask, tileClasses });
        } else {
          flashAttnPrefill(pass, { ...problem, mask });
        }
        pass.commitAndWait();
      });
    return {
      measure: () => milliseconds(true),
      baseline: () => milliseconds(false),
      dispose: () => device.dispose(),
    };
  },
};
