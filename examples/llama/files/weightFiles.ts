import { open } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { readSafetensorsHeader, type SafetensorsPlace } from "metal-attention/safetensors";
import * as z from "zod";
import { ModelError } from "../errors.ts";
import { readJson } from "./json.ts";

/** A tensor of a model's files, not read yet. */
export interface StoredTensor extends SafetensorsPlace {
  readonly path: string;
}

const index = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/**
 * Where the tensors of a model lie: in `model.safetensors`, or in the shards that `model.safetensors.index.json` names.
 *
 * Errors: `weights` for a shard outside the folder, and a tensor that is not in the shard that the index names; the
 * library's for a file that is no safetensors file, or says other than it has.
 */
export async function findWeights(folder: string): Promise<ReadonlyMap<string, StoredTensor>> {
  const indexPath = join(folder, "model.safetensors.index.json");
  const single = join(folder, "model.safetensors");
  if (!(await Bun.file(indexPath).exists())) {
    if (!(await Bun.file(single).exists())) {
      throw new ModelError("weights", `${folder}: neither model.safetensors nor model.safetensors.index.json is there`);
    }
    return tensorsOf(single);
  }
  const { weight_map: shardOf } = await readJson(indexPath, index, "weights");
  const shards = new Map<string, ReadonlyMap<string, StoredTensor>>();
  const found = new Map<string, StoredTensor>();
  for (const [name, shard] of Object.entries(shardOf)) {
    const path = resolve(folder, shard);
    if (!path.startsWith(resolve(folder) + sep)) {
      throw new ModelError("weights", `${indexPath}: the shard ${JSON.stringify(shard)} is outside the folder`);
    }
    const tensors = shards.get(path) ?? (await tensorsOf(path));
    shards.set(path, tensors);
    const tensor = tensors.get(name);
    if (tensor === undefined) {
      throw new ModelError("weights", `${indexPath}: ${JSON.stringify(name)} is said to be in ${shard}, but is not`);
    }
    found.set(name, tensor);
  }
  return found;
}

async function tensorsOf(path: string): Promise<ReadonlyMap<string, StoredTensor>> {
  const { tensors } = await readSafetensorsHeader(path);
  return new Map([...tensors].map(([name, place]) => [name, { ...place, path }]));
}

/** Bytes that are read at once. */
const pieceLength = 16 * 2 ** 20;

/**
 * Reads the bytes of tensors, piece by piece, straight to where they belong: `to` is memory of the device where nothing
 * has to be converted. Files stay open from one tensor to the next.
 */
export class WeightReader {
  readonly #open = new Map<string, Promise<Awaited<ReturnType<typeof open>>>>();

  async read({ path, start, end }: StoredTensor, to: Uint8Array, onBytes: (count: number) => void): Promise<void> {
    const file = this.#open.get(path) ?? open(path);
    this.#open.set(path, file);
    const handle = await file;
    for (let at = 0; at < end - start; ) {
      const { bytesRead } = await handle.read(to, at, Math.min(pieceLength, end - start - at), start + at);
      if (bytesRead === 0) throw new ModelError("weights", `${path}: it ended at byte ${start + at} while it was read`);
      at += bytesRead;
      onBytes(bytesRead);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#open.values()) await (await file.catch(() => undefined))?.close();
  }
}
