/** The table of a device: its kernels by the device's own clock, each beside a copy of the device's. */
import { Device, MetalAttentionError, type Pass, type Tensor } from "../../../src/index.ts";
import { UsageError } from "../../lib/command.ts";
import { formatNumber, formatTable, formatTime } from "../../lib/table.ts";
import { median } from "../benchmark.ts";
import { attentionRows } from "./attention.ts";
import { cacheRows } from "./caches.ts";
import { matrixRow } from "./matrices.ts";
import { DeviceRoom, type DeviceRow, type DeviceSizes } from "./row.ts";
import { torchTimes } from "./torch.ts";

export const deviceRows: readonly DeviceRow[] = [...cacheRows, matrixRow, ...attentionRows];

const rounds = 11;

/** Beyond any cache of the device. */
const sizes: DeviceSizes = { source: 2 ** 30, copied: 2 ** 30, tokens: 4096, keys: 32768 };
/** For a look at the table, on any machine. */
const quickSizes: DeviceSizes = { source: 2 ** 20, copied: 2 ** 16, tokens: 64, keys: 512 };

/** A line of the JSON. */
export interface DeviceFigure {
  readonly name: string;
  /** Seconds of the device: the median. */
  readonly time: number;
  readonly value: number;
  readonly unit: string;
  /** GB/s of what it has to read and write. */
  readonly moved: number;
  /** `moved` beside that of the device's own copy in the same rounds. */
  readonly share: number;
  readonly rounds: number;
  /** `value` of a row of matrix products beside that of `matrix-bf16` in the same run. */
  readonly ofMatrices?: number;
  /** Seconds of torch's attention of the same shape, where Python has it. */
  readonly torch?: number;
}

/** All rows, or those of `names`, each by way of `run`. */
export function measureDevice(
  device: Device,
  options: { readonly quick: boolean; readonly names?: readonly string[] | undefined },
  run: <T>(name: string, action: () => T) => T,
): DeviceFigure[] {
  const chosen = deviceRows.filter(({ name }) => options.names?.includes(name) ?? true);
  const used = options.quick ? quickSizes : sizes;
  const torch = chosen.some((row) => attentionRows.includes(row)) ? torchTimes(used) : {};
  let peak: DeviceFigure | undefined;
  const measured = (row: DeviceRow) => run(row.name, () => measureRow(device, row, used));
  return chosen.map((row) => {
    if (row.isOfMatrices) peak ??= measured(matrixRow);
    const figure = measured(row);
    if (row === matrixRow) peak = figure;
    const other = torch[row.name];
    return {
      ...figure,
      ...(row.isOfMatrices && peak && { ofMatrices: figure.value / peak.value }),
      ...(other !== undefined && { torch: other }),
    };
  });
}

/**
 * The time that a row adds to a pass behind a copy: the copy leaves nothing of the row's tensors in the device's caches,
 * and keeps the device at work while the row is submitted. Nothing is sampled between dispatches, which would keep them
 * apart. Rounds in turns with the copy alone, of which the first is not counted.
 */
function measureRow(device: Device, { name, unit, prepare }: DeviceRow, used: DeviceSizes): DeviceFigure {
  const made: Tensor[] = [];
  const room = new DeviceRoom(device, made);
  try {
    const [from, to] = [room.empty("u8", [used.copied]), room.empty("u8", [used.copied])];
    const { moved, work, encode } = prepare(room, used);
    const timeOf = (encodeBehind: (pass: Pass) => void): number => {
      using pass = device.pass({ mode: "serial" });
      pass.copy(from, to);
      encodeBehind(pass);
      pass.commitAndWait();
      return pass.info.gpuTime;
    };
    const copies: number[] = [];
    const times: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const alone = timeOf(() => {});
      copies.push(alone);
      times.push(timeOf(encode) - alone);
    }
    const time = median(times.slice(1));
    const copied = (2 * used.copied) / median(copies.slice(1));
    return { name, time, value: work / time, unit, moved: moved / time / 1e9, share: moved / time / copied, rounds };
  } finally {
    for (const tensor of made) tensor.dispose();
  }
}

/** The figures, then what each row is. */
export function formatDeviceTable(figures: readonly DeviceFigure[]): string {
  const header = ["name", "time", "value", "unit", "GB/s moved", "of the copy", "of matrices", "torch", "of torch"];
  const cells = figures.map(({ name, time, value, unit, moved, share, ofMatrices, torch }) => [
    name,
    formatTime(time),
    formatNumber(value),
    unit,
    formatNumber(moved),
    formatNumber(share),
    ofMatrices === undefined ? "" : formatNumber(ofMatrices),
    torch === undefined ? "" : formatTime(torch),
    torch === undefined ? "" : formatNumber(torch / time),
  ]);
  const notes = deviceRows
    .filter(({ name }) => figures.some((figure) => figure.name === name))
    .map(({ name, about }) => `${name}: ${about}.`);
  return [
    formatTable(
      header,
      cells,
      header.filter((column) => column !== "name" && column !== "unit"),
    ),
    notes.join("\n"),
  ].join("\n\n");
}

/** The device that `--device` names, and a line about it. */
export function openNamed(name: string): { device: Device; about: string } {
  const which = /^\d+$/.test(name) ? Number(name) : (name as "cpu" | "nvidia");
  const device = openDevice(which);
  const { info } = device;
  const about = `${info.name} (${info.backend}), ${process.platform} ${process.arch}, Bun ${Bun.version}; tensors in private storage, medians of ${rounds} rounds by the device's clock, each after a copy of the device's`;
  return { device, about };
}

function openDevice(device: number | "cpu" | "nvidia"): Device {
  try {
    return Device.open({ device });
  } catch (cause) {
    if (!(cause instanceof MetalAttentionError) || cause.argument !== "options.device") throw cause;
    throw new UsageError(`--device is ${JSON.stringify(device)}; it is nvidia, cpu or an index`, { cause });
  }
}
