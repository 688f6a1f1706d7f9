import { inputsFromText } from "../attention-layer/inputs.ts";
import { normalArray } from "../lib/random.ts";

/** Head vectors to encode, one after another. */
export interface DataSet {
  readonly name: string;
  readonly headDim: number;
  /** f32 [vectors, headDim] */
  readonly values: Float32Array<ArrayBuffer>;
}

const headDim = 128;
const vectors = 10_000;
/** How much larger the channel of outliers is than the others, and which it is. */
const [outlierFactor, outlierChannel] = [50, 17];

/** What the error is measured on. The text is the demo's. */
export async function dataSets(text: string): Promise<readonly DataSet[]> {
  const normal = normalArray(vectors * headDim, 1, 1);
  const withOutliers = normal.map((value, i) => (i % headDim === outlierChannel ? outlierFactor * value : value));
  const layer = await inputsFromText(text);
  return [
    { name: "Gaussian", headDim, values: normal },
    { name: `one channel ${outlierFactor} times larger`, headDim, values: withOutliers },
    { name: "keys of the text", headDim: layer.headDim, values: layer.k },
    { name: "values of the text", headDim: layer.headDim, values: layer.v },
  ];
}

/** Head vectors that a transform without signs would turn into spikes, or flat ones. */
export function structuredVectors(size: number): readonly { readonly name: string; readonly vector: Float64Array }[] {
  const vector = (valueAt: (i: number) => number) => Float64Array.from({ length: size }, (_, i) => valueAt(i));
  return [
    { name: "constant", vector: vector(() => 1) },
    { name: "period 2: 1, -1", vector: vector((i) => (i % 2 === 0 ? 1 : -1)) },
    { name: "period 2: 1, 0", vector: vector((i) => 1 - (i % 2)) },
    { name: "one-hot", vector: vector((i) => (i === outlierChannel ? 1 : 0)) },
    { name: "Gaussian", vector: Float64Array.from(normalArray(size, 1, 1)) },
  ];
}
