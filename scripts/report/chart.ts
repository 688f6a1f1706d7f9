import { lineChart } from "../lib/chart.ts";
import type { Measured } from "./measure.ts";

/** Recall of facts and agreement with the reference against bits a value. */
export function drawFormats(rows: readonly Measured[]): string {
  // Beyond 16 bits nothing changes.
  const drawn = rows.filter(({ bitsPerValue }) => bitsPerValue < 17);
  const points = (of: (row: Measured) => number) => drawn.map((row) => [row.bitsPerValue, 100 * of(row)] as const);
  return lineChart({
    title: "What a cache format does to a language model",
    subtitle: "the model of examples/recall, 2.3 million parameters; a point for each pair of widths of K and V",
    xTitle: "bits a value, norms included",
    yTitle: "percent",
    logarithmic: false,
    series: [
      { name: "facts recalled", kind: "points", points: points(({ recallOfAll }) => recallOfAll) },
      { name: "same next byte as with f32", kind: "points", points: points(({ agreement }) => agreement) },
    ],
  });
}
