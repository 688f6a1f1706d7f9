import { dtypeSize } from "../device/dtypes.ts";
import type { Pass } from "../device/pass.ts";
import { Tensor } from "../device/tensor.ts";

// What a cache moves besides its dispatches: for forks, for steps longer than a ring, and for files. The CPU does it where
// it sees both ends, and else copies of the device. No pass may be using either end.

/** @internal Neighbouring elements of a tensor. */
export interface Run {
  readonly tensor: Tensor;
  /** From the tensor's first element. */
  readonly start: number;
  readonly length: number;
}

/** Copies that go to the device as one pass. */
const mostCopies = 4096;

/** @internal Copies runs to others of the same dtypes and lengths. */
export function copyRuns(pairs: readonly (readonly [from: Run, to: Run])[]): void {
  const isSeen = ([from, to]: readonly [Run, Run]) => Tensor.isVisible(from.tensor) && Tensor.isVisible(to.tensor);
  const hidden = pairs.filter((pair) => !isSeen(pair));
  for (let first = 0; first < hidden.length; first += mostCopies) {
    const some = hidden.slice(first, first + mostCopies);
    using pass = (some[0] as (typeof some)[0])[0].tensor.device.pass();
    encodeCopies(pass, some);
    pass.commitAndWait();
  }
  // Those of the CPU come last, as they cannot be refused.
  for (const [from, to] of pairs.filter(isSeen)) bytesOf(to).set(bytesOf(from));
}

/** @internal Encodes copies of runs to others of the same dtypes and lengths. */
export function encodeCopies(pass: Pass, pairs: readonly (readonly [from: Run, to: Run])[]): void {
  for (const [from, to] of pairs) {
    using source = partOf(from);
    using target = partOf(to);
    pass.copy(source, target);
  }
}

/** @internal The bytes of runs of one tensor, one after another. */
export function readRuns(runs: readonly Run[]): Uint8Array<ArrayBuffer> {
  return throughStage(runs, (stage, pairs) => {
    copyRuns(pairs.map(([run, place]) => [run, place] as const));
    return Tensor.bytesOf(stage).slice();
  });
}

/** @internal Writes bytes, as `readRuns` gives them, to runs of one tensor. */
export function writeRuns(runs: readonly Run[], bytes: Uint8Array): void {
  throughStage(runs, (stage, pairs) => {
    Tensor.bytesOf(stage).set(bytes);
    copyRuns(pairs.map(([run, place]) => [place, run] as const));
  });
}

/** Calls `use` with a tensor of the shared storage for all runs, and the place of each in it. */
function throughStage<T>(
  runs: readonly Run[],
  use: (stage: Tensor, pairs: readonly (readonly [run: Run, place: Run])[]) => T,
): T {
  const { tensor } = runs[0] as Run;
  const length = runs.reduce((sum, run) => sum + run.length, 0);
  using stage: Tensor = tensor.device.tensor(tensor.dtype, [length]);
  let start = 0;
  const pairs = runs.map((run) => {
    const place = { tensor: stage, start, length: run.length };
    start += run.length;
    return [run, place] as const;
  });
  return use(stage, pairs);
}

function bytesOf({ tensor, start, length }: Run): Uint8Array<ArrayBuffer> {
  const size = dtypeSize(tensor.dtype);
  return Tensor.bytesOf(tensor).subarray(start * size, (start + length) * size);
}

function partOf({ tensor, start, length }: Run): Tensor {
  using flat = tensor.reshape([tensor.length]);
  return flat.slice(start, start + length);
}
