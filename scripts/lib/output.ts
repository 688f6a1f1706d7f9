import { mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError } from "./command.ts";

/** Makes a folder that will be written into, and says so where it was missing. Call it before the work. */
export function prepareFolder(folder: string): void {
  if (folder === "") throw new UsageError("--out is empty; name a folder");
  if (mkdirSync(folder, { recursive: true }) !== undefined) console.log(`the folder ${folder} is made`);
}

/** The same for one that has to be empty. */
export function prepareEmptyFolder(folder: string): void {
  prepareFolder(folder);
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty; name a new folder, or empty it first`);
}

/** Makes the folder of a file that will be written. Refuses a file that is a folder itself. */
export function prepareFile(file: string, option: string): void {
  if (file === "") throw new UsageError(`${option} is empty; name a file`);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`${option} is ${JSON.stringify(file)}, which is a folder; name a file`);
  }
  prepareFolder(dirname(file));
}
