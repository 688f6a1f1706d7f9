import type { CopyTokensParams } from "../../src/reference/index.ts";
import { seededRandom } from "./random.ts";

interface TokenArgs {
  readonly seqPosStart: number;
  readonly nTokens?: number;
  readonly srcTokOffset?: number;
}

/** A copy of tokens into a head-major cache: the same for token-major and head-major sources. */
export interface TokenCase {
  readonly name: string;
  readonly nHeads: number;
  readonly headDim: number;
  readonly srcTokens: number;
  readonly capacity: number;
  /** What the caller says; the rest follows from the shapes. */
  readonly args: TokenArgs & {
    /** Only where a linear cache would end before the last token. */
    readonly isSliding?: true;
  };
  /** What that means. */
  readonly resolved: CopyTokensParams;
  readonly srcOffset?: number;
  readonly cacheOffset?: number;
}

function tokenCase(
  name: string,
  [nHeads, headDim]: readonly [number, number],
  [srcTokens, capacity]: readonly [number, number],
  given: TokenArgs,
  offsets: { readonly srcOffset?: number; readonly cacheOffset?: number } = {},
): TokenCase {
  const { seqPosStart, srcTokOffset = 0, nTokens = srcTokens - srcTokOffset } = given;
  const isRing = seqPosStart + nTokens > capacity;
  const args = isRing ? { ...given, isSliding: true as const } : given;
  const resolved = { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset };
  return { name, nHeads, headDim, srcTokens, capacity, args, resolved, ...offsets };
}

const headDims = [1, 2, 3, 4, 5, 7, 8, 12, 31, 64, 127, 128, 256, 257];

const random = seededRandom(2024);
const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));

/** Shapes that nobody chose. */
const drawnCases = Array.from({ length: 40 }, (_, index) => {
  const shape = [draw(1, 9), draw(1, 70)] as const;
  const [srcTokens, capacity] = [draw(1, 20), draw(1, 24)];
  const srcTokOffset = draw(0, srcTokens - 1);
  const nTokens = draw(1, Math.min(srcTokens - srcTokOffset, capacity));
  const args = { seqPosStart: draw(0, 3 * capacity), srcTokOffset, nTokens };
  const offsets = { srcOffset: draw(0, 5), cacheOffset: draw(0, 5) };
  return tokenCase(`drawn shape ${index}`, shape, [srcTokens, capacity], args, offsets);
});

export const tokenCases: readonly TokenCase[] = [
  ...headDims.flatMap((headDim) => [
    tokenCase(`linear, heads of ${headDim}`, [3, headDim], [3, 5], { seqPosStart: 1 }),
    tokenCase(`ring that wraps, heads of ${headDim}`, [2, headDim], [4, 5], { seqPosStart: 8 }),
  ]),
  ...[0, 1, 2, 3].flatMap((srcOffset) =>
    [0, 1, 2, 3].map((cacheOffset) => {
      const name = `source ${srcOffset} and cache ${cacheOffset} elements into their buffers`;
      return tokenCase(name, [2, 8], [3, 4], { seqPosStart: 2 }, { srcOffset, cacheOffset });
    }),
  ),
  tokenCase("odd heads at odd offsets", [3, 9], [4, 5], { seqPosStart: 3 }, { srcOffset: 3, cacheOffset: 1 }),
  tokenCase("one token of one head of one element", [1, 1], [1, 1], { seqPosStart: 0 }),
  tokenCase("one token in the last slot", [2, 64], [1, 7], { seqPosStart: 6 }),
  tokenCase("the whole cache", [2, 8], [7, 7], { seqPosStart: 0 }),
  tokenCase("a whole ring from its middle", [2, 8], [7, 7], { seqPosStart: 3 }),
  tokenCase("the last slot, then the first", [2, 8], [2, 7], { seqPosStart: 6 }),
  tokenCase("a ring of one slot", [2, 8], [1, 1], { seqPosStart: 41 }),
  tokenCase("from the middle of the source to its end", [2, 8], [9, 16], { seqPosStart: 2, srcTokOffset: 5 }),
  tokenCase("the middle of the source", [2, 8], [9, 16], { seqPosStart: 14, srcTokOffset: 3, nTokens: 4 }),
  tokenCase("the middle of a source of odd heads", [3, 5], [9, 6], { seqPosStart: 4, srcTokOffset: 3, nTokens: 4 }),
  tokenCase("the first token of the source", [2, 8], [9, 3], { seqPosStart: 1, nTokens: 1 }),
  tokenCase("the last token of the source", [2, 8], [9, 3], { seqPosStart: 1, srcTokOffset: 8 }),
  tokenCase("the largest positions", [2, 8], [3, 7], { seqPosStart: 2 ** 32 - 4 }),
  tokenCase("many tokens", [4, 64], [70, 100], { seqPosStart: 77 }),
  tokenCase("many heads", [37, 4], [3, 3], { seqPosStart: 1 }),
  ...drawnCases,
];
