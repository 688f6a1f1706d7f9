/** The text of a kernel file of this folder, as a program would read one of its own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export function kernelSource(name: string): string {
  return readFileSync(join(import.meta.dir, `${name}.metal`), "utf8");
}
