import { display, refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { attentionTiles } from "../attention/attentionTiles.ts";

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
  readonly #range: TensorRange;
  readonly #maskShape: readonly number[];

  /** @internal Use `classifyMaskTiles`. Takes over `tensor`. */
  constructor(tensor: Tensor<"u8">, range: TensorRange, mask: TensorRange, queryTile: number, keyTile: number) {
    this.tensor = tensor;
    this.maskShape = Object.freeze([...mask.shape]);
    this.queryTile = queryTile;
    this.keyTile = keyTile;
    this.#range = range;
    this.#maskShape = mask.shape;
  }

  /** @internal The classes that a caller passed as `argument`, once they are known to be usable on `device`. */
  static use(value: unknown, device: DeviceLifetime, argument: string): TileClasses {
    if (typeof value !== "object" || value === null || !(#range in value)) {
      throw refused(argument, `expected what classifyMaskTiles returns, got ${display(value)}`);
    }
    Tensor.use(value.tensor, device, argument);
    return value;
  }

  /** @internal The classes for a mask in attention of a head size; refused where they were made for others. */
  static rangeFor(classes: TileClasses, mask: TensorRange, headDim: number, argument: string): TensorRange {
    classes.#checkTiles(headDim, argument);
    const made = classes.#maskShape;
    const { shape } = mask;
    let equal = made.length === shape.length;
    for (let axis = 0; equal && axis < shape.length; axis++) equal = made[axis] === shape[axis];
    if (!equal) throw refused(argument, `made for a mask of shape [${made}], got one of [${shape}]`);
    return classes.#range;
  }

  #checkTiles(headDim: number, argument: string): void {
    const { queryTile, keyTile } = attentionTiles(headDim);
    if (this.queryTile === queryTile && this.keyTile === keyTile) return;
    throw refused(
      argument,
      `made for tiles of ${this.queryTile} x ${this.keyTile}, a head size of ${headDim} has tiles of ` +
        `${queryTile} x ${keyTile}; classify the mask with headDim: ${headDim}`,
    );
  }

  /** Gives the memory back. A second call does nothing. */
  dispose(): void {
    this.tensor.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
