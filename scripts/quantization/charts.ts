import { CODEBOOKS } from "../../src/reference/index.ts";
import { barChart, lineChart } from "../lib/chart.ts";
import { formats, type RoundTrip, rateDistortion, type SignsComparison } from "./measure.ts";

/** Error against bits a value, with what theory allows. */
export function drawErrors(trips: readonly RoundTrip[]): string {
  const widths = [...new Set(formats.map(({ bits }) => bits))].toSorted((a, b) => a - b);
  const names = [...new Set(trips.map(({ data }) => data))];
  return lineChart({
    title: "Error of the quantized KV cache",
    subtitle:
      "written and read back on the device; norms are counted; above 8 bits per value: 5, 6 and 8 bits in a byte each",
    xTitle: "bits per value",
    yTitle: "squared error / squared length",
    logarithmic: true,
    series: [
      ...names.map((name) => ({
        name,
        kind: "points" as const,
        points: trips
          .filter(({ data }) => data === name)
          .map(({ bitsPerValue, error }) => [bitsPerValue, error] as const),
      })),
      {
        name: "optimum of scalar codes (Lloyd-Max)",
        kind: "line",
        points: widths.map((bits) => [bits, CODEBOOKS[bits].distortion]),
      },
      {
        name: "rate-distortion bound",
        kind: "line",
        points: widths.map((bits) => [bits, rateDistortion(bits)]),
      },
    ],
  });
}

/** What the signs of the transform are for. */
export function drawSigns(comparisons: readonly SignsComparison[], headDim: number): string {
  return barChart({
    title: `Hadamard transform with and without random signs, ${comparisons[0]?.bits} bits, D = ${headDim}`,
    subtitle: "float64 oracle, one head vector each",
    yTitle: "squared error / squared length",
    groups: comparisons.map(({ data }) => data),
    series: [
      { name: "with signs", values: comparisons.map(({ withSigns }) => withSigns) },
      { name: "without", values: comparisons.map(({ without }) => without) },
    ],
  });
}
