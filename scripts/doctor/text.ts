import { formatBytes, formatTable, formatTime } from "../lib/table.ts";
import type { Examination } from "./examine.ts";

/** An examination as a person reads it, the problems last. */
export function formatExamination(examination: Examination): string {
  const { versions, settings, library, device, structs, kernels, problems } = examination;
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
  const pairs = (record: Readonly<Record<string, string>>) =>
    Object.entries(record).map(([name, value]) => `${name}: ${value}`);
  const right = kernels.filter(({ state }) => state === "right").length;
  return [
    ...list("versions", pairs(versions)),
    ...list("settings", pairs(settings)),
    ...list("library, every place looked at", library.places),
    ...list("device", device === undefined ? ["none was opened"] : pairs(deviceLines(examination))),
    ...list("layouts", [structs === 0 ? "not compared" : `${structs} structs compared with the library's`]),
    ...list("kernels", [
      kernels.length === 0
        ? "none was run"
        : `${kernels.length} are built in; ${right} were run and gave the right result`,
    ]),
    ...(problems.length === 0
      ? ["all is well"]
      : problems.flatMap(({ what, mend }) => [`PROBLEM: ${what.replaceAll("\n", "\n  ")}`, `  to mend it: ${mend}`])),
  ].join("\n");
}

function deviceLines({ device }: Examination): Record<string, string> {
  if (device === undefined) return {};
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
    block(formatExamination(examination)),
    "## Built-in kernels",
    block(formatTable(["kernel", "state", "case"], kernelRows, [])),
    "## Cases",
    block(formatTable(["case", "result", "time, compiling included"], caseRows, ["time, compiling included"])),
    "",
  ].join("\n\n");
}
