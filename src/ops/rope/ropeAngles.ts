import { checkPositive, display, refused } from "../../checks.ts";
import { checkAttached } from "../../device/convert.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { pairingCodes } from "../../ffi/generated/codes.ts";
import { checkRotaryDim, ropeFrequencies } from "./ropeFrequencies.ts";

/** By which angles head vectors turn, and which of their coordinates. */
export interface RopeAngles {
  /** Base of the frequencies theta^(-2 i / rotaryDim). Give this or `invFreq`. */
  readonly theta?: number | undefined;
  /** Radians from one position to the next, of each pair: [rotaryDim / 2], as {@link ropeFrequencies} makes them. */
  readonly invFreq?: Float32Array | undefined;
  /** Coordinates that turn together: i and i + rotaryDim / 2 (GPT-NeoX, Llama as Hugging Face stores it), or 2 i and 2 i + 1. */
  readonly pairing: "half" | "interleaved";
  /** Coordinates that turn, the first ones: 2 for each of `invFreq`, headDim beside `theta`, unless given. */
  readonly rotaryDim?: number | undefined;
  /** Factor of sine and cosine, finite and above 0; 1 unless given. */
  readonly attentionScale?: number | undefined;
}

/** @internal What the C functions take of {@link RopeAngles}. */
export interface UsedAngles {
  readonly invFreq: Float32Array;
  readonly rotaryDim: number;
  readonly pairing: number;
  readonly attentionScale: number;
}

/** The tables of `theta` in use, newest last. */
const tables = new Map<string, Float32Array>();
const maxTables = 16;

/** @internal The angles of vectors of `headDim` coordinates; `prefix` stands before the names in errors. */
export function useAngles(angles: RopeAngles, headDim: number, prefix = ""): UsedAngles {
  const pairing = checkPairing(angles.pairing, prefix);
  const { attentionScale: scale } = angles;
  const attentionScale = scale === undefined ? 1 : checkPositive(scale, `${prefix}attentionScale`);
  const frequencies = useFrequencies(angles.theta, angles.invFreq, angles.rotaryDim, headDim, prefix);
  const { rotaryDim } = frequencies;
  if (rotaryDim > headDim) throw refused(`${prefix}rotaryDim`, `${rotaryDim} is above the headDim ${headDim}`);
  return { ...frequencies, pairing, attentionScale };
}

function checkPairing(value: unknown, prefix: string): number {
  if (value !== "half" && value !== "interleaved") {
    throw refused(`${prefix}pairing`, `expected "half" or "interleaved", got ${display(value)}`);
  }
  return pairingCodes[value];
}

/** The frequencies, of which there is one way to give them. */
function useFrequencies(
  theta: unknown,
  invFreq: unknown,
  givenDim: unknown,
  headDim: number,
  prefix: string,
): { invFreq: Float32Array; rotaryDim: number } {
  if ((theta === undefined) === (invFreq === undefined)) {
    throw refused(
      `${prefix}theta`,
      `expected either theta or invFreq, got ${theta === undefined ? "neither" : "both"}`,
    );
  }
  const dim = givenDim === undefined ? undefined : checkRotaryDim(givenDim, `${prefix}rotaryDim`);
  if (invFreq === undefined) {
    const rotaryDim = dim ?? checkRotaryDim(headDim, `${prefix}rotaryDim`);
    return { invFreq: tableOf(theta as number, rotaryDim, prefix), rotaryDim };
  }
  if (!(invFreq instanceof Float32Array))
    throw refused(`${prefix}invFreq`, `expected a Float32Array, got ${display(invFreq)}`);
  checkAttached(invFreq, `${prefix}invFreq`);
  // A copy has the length that its memory has, whatever properties the caller's array was given.
  const table = new Float32Array(invFreq);
  const beyond = table.findIndex((f) => !Number.isFinite(f));
  if (beyond >= 0) throw refused(`${prefix}invFreq`, `element ${beyond} is ${table[beyond]}; frequencies are finite`);
  const rotaryDim = dim ?? 2 * table.length;
  if (2 * table.length !== rotaryDim || table.length === 0) {
    throw refused(
      `${prefix}invFreq`,
      `expected ${rotaryDim / 2} elements, one for each pair of rotaryDim ${rotaryDim}, got ${table.length}`,
    );
  }
  return { invFreq: table, rotaryDim };
}

function tableOf(theta: number, rotaryDim: number, prefix: string): Float32Array {
  checkPositive(theta, `${prefix}theta`);
  const key = `${theta} ${rotaryDim}`;
  let table = tables.get(key);
  if (table === undefined) {
    table = ropeFrequencies({ type: "default", theta, rotaryDim }).invFreq;
    if (tables.size >= maxTables) tables.delete(tables.keys().next().value as string);
    tables.set(key, table);
  }
  return table;
}

/** @internal Positions of tokens in device memory: i32 [nTokens], of all batches, or [B, nTokens]. */
export function usePositions(value: unknown, device: DeviceLifetime, batch: number, nTokens: number): TensorRange {
  const positions = Tensor.use(value, device, "positions");
  const { shape } = positions;
  if (`${shape}` !== `${nTokens}` && `${shape}` !== `${batch},${nTokens}`) {
    throw refused("positions", `expected shape [${nTokens}] or [${batch}, ${nTokens}], got [${shape.join(", ")}]`);
  }
  return positions;
}
