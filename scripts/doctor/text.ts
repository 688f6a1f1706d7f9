import type { DeviceInfo } from "../../src/index.ts";
import { formatBytes, formatTable, formatTime } from "../lib/table.ts";
import type { Examination } from "./examine.ts";
import type { Installation } from "./installation.ts";

const supportedClang =
  "19 is supported, since all tests ran with it; another from 18 on is taken, untested, and runs kernels with lanes one thread at a time unless its compiler pass is beside the library";

/** An installation as a person reads it. */
export function formatInstallation(installation: Installation): string {
  const { versions, settings, library, device, executor, structs } = installation;
  return [
    ...section("versions", pairs(versions)),
    ...section("settings", pairs(settings)),
    ...section("library, every place looked at", library.places),
    ...section("device", device === undefined ? ["none was opened"] : pairs(deviceLines(device))),
    ...section("kernels of one's own that use lanes run as", executor === undefined ? [] : [executor]),
    ...(device?.backend === "SoftMetal" ? section("clang", [supportedClang]) : []),
    ...section("layouts", [structs === 0 ? "not compared" : `${structs} structs compared with the library's`]),
  ].join("\n");
}

/** What came of the kernels, and the problems. */
export function formatOutcome({ kernels, problems }: Examination): string {
  const right = kernels.filter(({ state }) => state === "right").length;
  const counts = `${kernels.length} are built in; ${right} were run and gave the right result`;
  return [
    ...section("kernels", [kernels.length === 0 ? "none was run" : counts]),
    ...(problems.length === 0
      ? ["all is well"]
      : problems.flatMap(({ what, mend }) => [`PROBLEM: ${what.replaceAll("\n", "\n  ")}`, `  to mend it: ${mend}`])),
  ].join("\n");
}

/** A title and its lines, nothing where there are none. */
function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

function pairs(record: Readonly<Record<string, string>>): string[] {
  return Object.entries(record).map(([name, value]) => `${name}: ${value}`);
}

function deviceLines(device: DeviceInfo): Record<string, string> {
  return {
    name: `${device.name} (${device.backend})`,
    "longest buffer": formatBytes(device.maxBufferLength),
    "working set": formatBytes(device.recommendedMaxWorkingSetSize),
    "threadgroup memory": formatBytes(device.maxThreadgroupMemoryLength),
    "threads of a threadgroup": device.maxThreadsPerThreadgroup.join(" x "),
    "unified memory": device.hasUnifiedMemory ? "yes" : "no",
  };
}

/** The same as Markdown, with each kernel and each case. */
export function markdownReport(examination: Examination): string {
  const { kernels, cases, problems } = examination;
  const kernelRows = kernels.map(({ kernel, state, case: name }) => [kernel, state, name ?? ""]);
  const caseRows = cases.map(({ name, fault, seconds }) => [
    name,
    fault === undefined ? "right" : "WRONG",
    formatTime(seconds),
  ]);
  const block = (text: string) => `\`\`\`\n${text}\n\`\`\``;
  return [
    "# metal-attention doctor",
    `${problems.length} problems`,
    block(`${formatInstallation(examination)}\n${formatOutcome(examination)}`),
    "## Built-in kernels",
    block(formatTable(["kernel", "state", "case"], kernelRows, [])),
    "## Cases",
    block(formatTable(["case", "result", "time, compiling included"], caseRows, ["time, compiling included"])),
    "",
  ].join("\n\n");
}
