import { existsSync } from "node:fs";
import { join } from "node:path";

/** The compiler pass that `scripts/build` built. */
export function lanesPlugin(): string {
  const path = process.env["SOFTMETAL_LANES"] ?? join(import.meta.dir, "../../build/lib/softmetal-lanes-19.so");
  if (!existsSync(path)) throw new Error(`${path} is missing; scripts/build builds it`);
  return path;
}
