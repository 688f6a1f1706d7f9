import type { KvFormat } from "metal-attention";
import { ModelError } from "../errors.ts";
import type { FloatDType } from "./kernels.ts";

/** How keys and values are stored, and the dtype of queries and of what attention gives. */
export interface CacheFormat {
  readonly name: string;
  readonly k: KvFormat;
  readonly v: KvFormat;
  readonly attention: FloatDType;
}

const bits = [2, 3, 4, 5, 6, 8] as const;
type Bits = (typeof bits)[number];

/** A format by name: f32, f16 or bf16, or bits of K and V as in k8v4. Errors: `request`. */
export function cacheFormat(name: string): CacheFormat {
  if (name === "f32" || name === "f16" || name === "bf16") return { name, k: name, v: name, attention: name };
  const [, k, v] = /^k(\d)v(\d)$/.exec(name) ?? [];
  const [bitsK, bitsV] = [k, v].map(Number) as [Bits, Bits];
  if (!bits.includes(bitsK) || !bits.includes(bitsV)) {
    const known = `f32, f16, bf16, or k8v4 and the like with ${bits.join(", ")} bits`;
    throw new ModelError("request", `cache: expected ${known}, got ${JSON.stringify(name)}`);
  }
  return { name, k: codes(bitsK), v: codes(bitsV), attention: "f16" };
}

/** Codes of 5 and 6 bits take a byte each unless they are packed densely. */
function codes(bits: Bits): KvFormat {
  return bits === 5 || bits === 6 ? { bits, packing: "dense" } : { bits };
}
