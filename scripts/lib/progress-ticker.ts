/** The thread of {@link Progress}: a line on standard error each second that a step takes. */
import { writeSync } from "node:fs";
import type { ProgressMessage } from "./progress.ts";

declare const self: Worker;

let timer: ReturnType<typeof setInterval> | undefined;

self.onmessage = ({ data }: MessageEvent<ProgressMessage>) => {
  clearInterval(timer);
  const { step } = data;
  if (step === undefined) return;
  let seconds = 0;
  // Written at once: console.log of a thread goes by way of the main one, which may be blocked.
  timer = setInterval(() => writeSync(2, `    ${step}: ${++seconds} s\n`), 1000);
};
