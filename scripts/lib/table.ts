/** Text tables and units, for scripts that print results. */

/** Columns padded to their widest cell. Those named in `right` hold numbers and are aligned to the right. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly string[],
): string {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    header
      .map((title, column) => {
        const cell = cells[column] ?? "";
        const width = widths[column] ?? 0;
        return right.includes(title) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n");
}

/** A table in Markdown. Cells hold no vertical bars. */
export function formatMarkdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const timeUnits: readonly [seconds: number, unit: string][] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "us"],
  [1e-9, "ns"],
];

/** Seconds with three digits: `1.25 ms`. */
export function formatTime(seconds: number): string {
  const [scale, unit] = timeUnits.find(([scale]) => seconds >= scale) ?? [1e-9, "ns"];
  return `${formatNumber(seconds / scale)} ${unit}`;
}

/** Bytes with a binary prefix: `16.0 MiB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(3, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const unit = ["B", "KiB", "MiB", "GiB"][power] ?? "B";
  return power === 0 ? `${bytes} B` : `${(bytes / 1024 ** power).toFixed(1)} ${unit}`;
}

/** Two or three digits, more only where they stand before the point. */
export function formatNumber(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude > 0 && magnitude < 0.1) return value.toPrecision(2);
  return value.toFixed(magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2);
}
