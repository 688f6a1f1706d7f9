import type { CopyStream } from "../../src/reference/index.ts";

/** A source and cache whose first axis is a batch, as streams of one batch each. */
export function eachBatch(stream: CopyStream, batch: number): readonly CopyStream[] {
  const part = <T extends { length: number; subarray(start: number, end: number): T }>(values: T, index: number) => {
    const length = values.length / batch;
    return values.subarray(index * length, (index + 1) * length);
  };
  return Array.from({ length: batch }, (_, index) => ({
    ...stream,
    src: part(stream.src, index),
    cache: part(stream.cache, index),
  }));
}
