import { afterAll } from "bun:test";
import type { Block } from "../../src/ffi/block.ts";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import type { MATensor } from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, type NativeBuffer, NativeScene, tensorRecord } from "./abi.ts";
import { type AbiRefusal, expectRefused } from "./abiRefusals.ts";
import { type CacheExtents, type CallArgs, type CallName, hadamardCalls, type StreamRecords } from "./hadamardCalls.ts";

/** What a case changes in valid arguments. */
export type Spoil = Partial<Omit<CallArgs, "k" | "cache">> & {
  readonly k?: Partial<StreamRecords>;
  readonly cache?: Partial<CacheExtents>;
};

/** A call on the quantized cache that must be refused. */
export interface HadamardRefusal extends AbiRefusal {
  readonly call: CallName;
  readonly spoil: Spoil;
  /** Changes the packed bytes. */
  readonly poke?: (block: Block) => void;
}

export function refused(
  call: CallName,
  name: string,
  spoil: Spoil,
  status: AbiRefusal["status"],
  argument: string,
  ...says: AbiRefusal["says"]
): HadamardRefusal {
  return { name: `${call}: ${name}`, call, spoil, status, argument, says };
}

/**
 * Valid calls of the C ABI, of 4 bits with packing nibble: 2 heads of 64 values,
 * 5 slots, 3 tokens from position 1 on, the source's first one left out.
 */
export class HadamardAbi {
  readonly scene = new NativeScene();
  readonly pass = this.scene.pass();
  readonly #buffers: NativeBuffer[] = [];
  readonly k = this.#stream();
  readonly v = this.#stream();
  readonly rmsScratch = this.#tensor("f32", 512);

  constructor() {
    afterAll(() => this.scene.close());
  }

  /** A tensor at the start of a buffer of 4,096 bytes, which no refusal may write to. */
  #tensor(dtype: keyof typeof dtypeCodes, byteLength: number): MATensor {
    const buffer = this.scene.buffer(4096);
    this.#buffers.push(buffer);
    buffer.bytes.fill(17 * this.#buffers.length);
    return tensorRecord(buffer.handle, dtypeCodes[dtype], 0, byteLength);
  }

  #stream(): StreamRecords {
    return {
      vectors: this.#tensor("f32", 4 * 2 * 64 * 4),
      packed: this.#tensor("u8", 2 * 5 * 32),
      norms: this.#tensor("f32", 2 * 5 * 4),
    };
  }

  args({ k, cache, ...rest }: Spoil): CallArgs {
    return {
      v: {},
      rmsScratch: undefined,
      rmsCoordinates: 0,
      batch: 1,
      bits: 4,
      packing: packingCodes.nibble,
      nTokens: 3,
      srcTokOffset: 1,
      nSrcTokens: 4,
      ...rest,
      k: { ...this.k, ...k },
      cache: { headDim: 64, nKvHeads: 2, position: 1, capacity: 5, isSliding: 0, scaleFactorD512: 1, ...cache },
    };
  }

  /** The status of a call on this pass. */
  send(call: CallName, spoil: Spoil, poke?: (block: Block) => void): number {
    return hadamardCalls[call](this.pass, this.args(spoil), poke);
  }

  readonly check = (refusal: HadamardRefusal): void => {
    const { call, spoil, poke } = refusal;
    expectRefused(this.scene, this.pass, this.#buffers, refusal, () => this.send(call, spoil, poke));
  };
}
