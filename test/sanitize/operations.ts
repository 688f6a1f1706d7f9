/**
 * `bun test/sanitize/operations.ts [--device NAME] [CASE...]`: runs cases in one process, all but those with planted
 * mistakes unless some are named, and prints `CASE: ok` or `CASE: wrong: WHAT` of each. `--list` prints their names.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Device } from "../../src/index.ts";
import { cleanCases, plantedCases, type SanitizedCase } from "./cases.ts";

const { values, positionals } = parseArgs({
  options: { device: { type: "string", default: "nvidia" }, list: { type: "boolean", default: false } },
  allowPositionals: true,
});

const clean = cleanCases();
const known = new Map([...clean, ...plantedCases()].map((each) => [each.name, each]));
const chosen = positionals.length === 0 ? clean : positionals.map(caseOf);

function caseOf(name: string): SanitizedCase {
  const found = known.get(name);
  if (found === undefined) throw new Error(`no case ${JSON.stringify(name)}; --list prints their names`);
  return found;
}

function open(): Device {
  const { device } = values;
  return Device.open({ device: device === "cpu" || device === "nvidia" ? device : Number(device) });
}

const folder = mkdtempSync(join(tmpdir(), "metal-attention-sanitize-"));
let shared: Device | undefined;
let wrong = 0;

/** Runs a case; a device that something went wrong on may be lost, and is not used again. */
async function faultOf(entry: SanitizedCase): Promise<string | undefined> {
  const device = entry.isAlone ? open() : (shared ?? open());
  if (!entry.isAlone) shared = device;
  let fault: string | undefined;
  try {
    fault = await entry.run(device, folder);
  } catch (error) {
    fault = error instanceof Error ? error.message : String(error);
  }
  if (entry.isAlone || fault !== undefined) {
    device.dispose();
    if (shared === device) shared = undefined;
  }
  return fault?.replace(/\s+/g, " ").slice(0, 500);
}

if (values.list) {
  for (const name of known.keys()) console.log(name);
} else {
  for (const entry of chosen) {
    const fault = await faultOf(entry);
    if (fault !== undefined) wrong += 1;
    console.log(`${entry.name}: ${fault === undefined ? "ok" : `wrong: ${fault}`}`);
  }
  shared?.dispose();
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = wrong === 0 ? 0 : 1;
