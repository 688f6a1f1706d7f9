import { join } from "node:path";
import { runChecked } from "../helpers/run.ts";

/** That all kernels are in the packages for every processor: CONTRIBUTING has the command. */
export const isWhole = process.env["WHOLE_PACKAGES"] === "1";

/** Milliseconds that the packages may take, and a test that compiles the kernels of all cases. */
export const packageTimeout = isWhole ? 3_600_000 : 900_000;

/** Makes the archives in build/packages, with a sample of the kernels for processors that this machine's is not. */
export async function makePackages(): Promise<void> {
  await runChecked([join(import.meta.dir, "../../scripts/package"), ...(isWhole ? [] : ["--sample"])]);
}
