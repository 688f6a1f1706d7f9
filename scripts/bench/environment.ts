import { cpus, loadavg, totalmem } from "node:os";
import { Device } from "../../src/index.ts";

/** Processor, memory, versions and what else is running, for the reader of the figures. */
export function describeMachine(): string {
  using device = Device.open();
  const processors = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return (
    `${processors[0]?.model.trim() ?? "unknown processor"}, ${processors.length} threads, ${memory} GiB, ` +
    `${process.platform} ${process.arch}, Bun ${Bun.version}, device ${device.info.name} (${device.info.backend}); ` +
    `load ${loadavg()[0]?.toFixed(2)} before the run`
  );
}
