import { MetalAttentionError, type RopeFrequencies, type RopeFrequenciesArgs, ropeFrequencies } from "metal-attention";
import { ModelError } from "../errors.ts";
import type { RawRope } from "./rawConfig.ts";

export interface RopeSource {
  readonly rotaryDim: number;
  readonly theta: number;
  /** Of `config.json`; undefined where nothing is scaled. */
  readonly scaling: RawRope | undefined;
  readonly maxPositions: number;
  /** For messages. */
  readonly where: string;
}

/** The rotary frequencies that `config.json` describes. Errors: `config` for a type that is not known, or a lack. */
export function ropeOf(source: RopeSource): RopeFrequencies {
  try {
    return ropeFrequencies(argsOf(source));
  } catch (error) {
    if (!(error instanceof MetalAttentionError)) throw error;
    throw new ModelError("config", `${source.where}: rope: ${error.message}`, error);
  }
}

function argsOf({ rotaryDim, theta, scaling = {}, maxPositions, where }: RopeSource): RopeFrequenciesArgs {
  const base = { rotaryDim, theta: scaling.rope_theta ?? theta };
  const type = scaling.rope_type ?? scaling.type ?? "default";
  const need = <T>(value: T | undefined, name: string): T => {
    if (value !== undefined) return value;
    throw new ModelError("config", `${where}: rope of type ${type} without ${name}`);
  };
  const original = scaling.original_max_position_embeddings;
  const given = <K extends string, V>(name: K, value: V | null | undefined) =>
    (value === undefined || value === null ? {} : { [name]: value }) as { [name in K]?: V };
  switch (type) {
    case "default":
      return { type, ...base };
    case "linear":
      return { type, ...base, factor: need(scaling.factor, "factor") };
    case "llama3":
      return {
        type,
        ...base,
        factor: need(scaling.factor, "factor"),
        lowFreqFactor: need(scaling.low_freq_factor, "low_freq_factor"),
        highFreqFactor: need(scaling.high_freq_factor, "high_freq_factor"),
        originalMaxPositions: need(original, "original_max_position_embeddings"),
      };
    case "yarn":
      return {
        type,
        ...base,
        factor: need(scaling.factor, "factor"),
        originalMaxPositions: original ?? maxPositions,
        ...given("betaFast", scaling.beta_fast),
        ...given("betaSlow", scaling.beta_slow),
        ...given("truncate", scaling.truncate),
        ...given("mscale", scaling.mscale),
        ...given("mscaleAllDim", scaling.mscale_all_dim),
        ...given("attentionScale", scaling.attention_factor),
      };
    case "longrope": {
      const positions = need(original, "original_max_position_embeddings");
      return {
        type,
        ...base,
        shortFactor: need(scaling.short_factor, "short_factor"),
        longFactor: need(scaling.long_factor, "long_factor"),
        originalMaxPositions: positions,
        factor: scaling.factor ?? maxPositions / positions,
        sequenceLength: maxPositions,
        ...given("attentionScale", scaling.attention_factor),
      };
    }
    default:
      throw new ModelError(
        "config",
        `${where}: no support for rope of type ${JSON.stringify(type.slice(0, 100))}; known: default, linear, llama3, yarn, longrope`,
      );
  }
}
