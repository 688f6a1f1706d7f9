#!/usr/bin/env bun
/** Fixtures of every operation: inputs, parameters and expected outputs as files. */
import { Device } from "../src/index.ts";
import { type Manifest, makeFiles, readFixture, readManifest, writeFolder } from "./fixtures/manifest.ts";
import type { Case } from "./fixtures/operation.ts";
import { allCases, operations } from "./fixtures/operations/all.ts";
import { runFixture } from "./fixtures/run.ts";
import type { FileTensors } from "./fixtures/tensors.ts";
import { command, printable, runProgram, UsageError } from "./lib/command.ts";
import { prepareEmptyFolder } from "./lib/output.ts";
import { formatBytes, formatTable } from "./lib/table.ts";

const selection = {
  op: { type: "string", multiple: true, value: "NAME", help: "only cases of this operation" },
  case: { type: "string", multiple: true, value: "GLOB", help: "only cases whose name matches, such as '*d64*'" },
} as const;

/** The entries that the options ask for; an option that finds nothing is a mistake. */
function select<T extends { readonly name: string; readonly operation: string }>(
  entries: readonly T[],
  { op, case: globs }: { readonly op?: string[]; readonly case?: string[] },
): readonly T[] {
  const known = operations.map(({ name }) => name);
  const unknown = op?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`no operation ${JSON.stringify(unknown)}; there are ${known.join(", ")}`);
  const patterns = globs?.map((glob) => new Bun.Glob(glob));
  const chosen = entries.filter(
    ({ name, operation }) =>
      (op === undefined || op.includes(operation)) &&
      (patterns === undefined || patterns.some((pattern) => pattern.match(name))),
  );
  if (chosen.length === 0) throw new UsageError("no case matches --op and --case");
  return chosen;
}

/** The cases that a manifest names. */
function casesOf(manifest: Manifest): readonly Case[] {
  return manifest.cases.map(({ name }) => {
    const found = allCases().find((each) => each.name === name);
    if (found === undefined) throw new Error(`no case ${JSON.stringify(name)}; list shows those there are`);
    return found;
  });
}

function parseSeed(text: string): number {
  const seed = Number(text);
  if (!/^\d+$/.test(text) || seed > 0xffff_ffff) {
    throw new UsageError(`--seed is ${JSON.stringify(text)}; it is an integer from 0 to ${0xffff_ffff}`);
  }
  return seed;
}

const generate = command({
  name: "generate",
  summary: "Writes a safetensors file a case, and manifest.json. The same seed gives the same bytes on every machine.",
  options: {
    out: { type: "string", value: "DIR", help: "a folder that is new or empty" },
    seed: { type: "string", value: "N", help: "1 unless given" },
    like: { type: "string", value: "DIR", help: "the cases and the seed of the fixtures in another folder" },
    ...selection,
  },
  async run({ out, seed, like, ...chosen }) {
    if (out === undefined) throw new UsageError("--out DIR is missing");
    const model = like === undefined ? undefined : readManifest(like);
    const given = seed === undefined ? (model?.seed ?? 1) : parseSeed(seed);
    const known = model === undefined ? allCases() : casesOf(model);
    const selected = select(known, chosen);
    prepareEmptyFolder(out);
    const files = makeFiles(selected, given);
    await writeFolder(out, files);
    const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
    console.log(`${files.length - 1} fixtures and manifest.json in ${out}, ${formatBytes(bytes)}`);
    return 0;
  },
});

const verify = command({
  name: "verify",
  summary: "Runs the fixtures of a folder on this machine's device. The exit status is 0 when all are right.",
  positionals: ["DIR"],
  options: selection,
  async run(chosen, [folder = "."]) {
    const entries = select(readManifest(folder).cases, chosen);
    using device = Device.open();
    let wrong = 0;
    for (const entry of entries) {
      const fault = faultOf(device, folder, entry);
      if (fault !== undefined) wrong += 1;
      console.log(printable(fault === undefined ? `right  ${entry.name}` : `WRONG  ${entry.name}: ${fault}`));
    }
    console.log(`${entries.length - wrong} right, ${wrong} wrong, on ${device.info.name}`);
    return wrong === 0 ? 0 : 1;
  },
});

function faultOf(device: Device, folder: string, entry: Parameters<typeof readFixture>[1]): string | undefined {
  try {
    return runFixture(device, readFixture(folder, entry)).fault;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const list = command({
  name: "list",
  summary: "Shows the cases that generate writes, with their inputs and parameters.",
  options: selection,
  async run(chosen) {
    const describe = (tensors: FileTensors) =>
      [...tensors].map(([name, { dtype, shape }]) => `${name} ${dtype} [${shape}]`).join(", ");
    const rows = select(allCases(), chosen).map((entry) => {
      const { name, params, inputs, expected } = entry.make(1);
      return [name, describe(inputs), describe(expected), JSON.stringify(params)];
    });
    console.log(formatTable(["case", "inputs", "expected", "parameters"], rows, []));
    console.log(`${rows.length} cases`);
    return 0;
  },
});

process.exitCode = await runProgram(
  {
    name: "metal-attention-fixtures",
    summary: "Fixtures of every operation: inputs, parameters and what float64 oracles expect, as safetensors files.",
    commands: [generate, verify, list],
  },
  process.argv.slice(2),
);
