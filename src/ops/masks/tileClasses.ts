import { refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { markVersion, notOurs, tileClassesState } from "../../identity.ts";
import { attentionTiles } from "../attention/attentionTiles.ts";

/** What operations need of tile classes. */
interface TileClassesState {
  readonly range: TensorRange;
  readonly maskShape: readonly number[];
}

/**
 * The class of every tile of a mask, as {@link classifyMaskTiles} finds them,
 * with the tiles and the mask shape that they were made for.
 *
 * They take the memory of a tensor, which `dispose` gives back.
 */
export class TileClasses {
  /** 0 blocked throughout, 1 mixed, 2 nothing masked: [.., ceil(qL / queryTile), ceil(kL / keyTile)]. */
  readonly tensor: Tensor<"u8">;
  /** The mask's shape, [qL, kL] or [B, H, qL, kL]. */
  readonly maskShape: readonly number[];
  /** Query rows of a tile. */
  readonly queryTile: number;
  /** Keys of a tile. */
  readonly keyTile: number;
  readonly #state: TileClassesState;

  /** @internal Use `classifyMaskTiles`. Takes over `tensor`. */
  constructor(tensor: Tensor<"u8">, range: TensorRange, mask: TensorRange, queryTile: number, keyTile: number) {
    this.tensor = tensor;
    this.maskShape = Object.freeze([...mask.shape]);
    this.queryTile = queryTile;
    this.keyTile = keyTile;
    this.#state = { range, maskShape: mask.shape };
  }

  /** @internal */
  get [tileClassesState](): TileClassesState | undefined {
    return #state in this ? this.#state : undefined;
  }

  /** @internal The classes that a caller passed as `argument`, once they are known to be usable on `device`. */
  static use(value: unknown, device: DeviceLifetime, argument: string): TileClasses {
    if (!isTileClasses(value)) throw notOurs(value, "what classifyMaskTiles returns", argument);
    Tensor.use(value.tensor, device, argument);
    return value;
  }

  /** @internal The classes for a mask in attention of a head size; refused where they were made for others. */
  static rangeFor(classes: TileClasses, mask: TensorRange, headDim: number, argument: string): TensorRange {
    checkTiles(classes, headDim, argument);
    const { range, maskShape: made } = classes[tileClassesState] as TileClassesState;
    const { shape } = mask;
    let equal = made.length === shape.length;
    for (let axis = 0; equal && axis < shape.length; axis++) equal = made[axis] === shape[axis];
    if (!equal) throw refused(argument, `made for a mask of shape [${made}], got one of [${shape}]`);
    return range;
  }

  /** Gives the memory back. A second call does nothing. */
  dispose(): void {
    this.tensor.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

markVersion(TileClasses);

function isTileClasses(value: unknown): value is TileClasses {
  return typeof value === "object" && value !== null && (value as Partial<TileClasses>)[tileClassesState] !== undefined;
}

function checkTiles(classes: TileClasses, headDim: number, argument: string): void {
  const { queryTile, keyTile } = attentionTiles(headDim);
  if (classes.queryTile === queryTile && classes.keyTile === keyTile) return;
  throw refused(
    argument,
    `made for tiles of ${classes.queryTile} x ${classes.keyTile}, a head size of ${headDim} has tiles of ` +
      `${queryTile} x ${keyTile}; classify the mask with headDim: ${headDim}`,
  );
}
