import { cpus, release, totalmem } from "node:os";
import manifest from "../../package.json";
import { abiVersion } from "../../src/ffi/generated/symbols.ts";
import { checkLayouts } from "../../src/ffi/layoutCheck.ts";
import { searchLibrary } from "../../src/ffi/library.ts";
import { Device, type DeviceInfo } from "../../src/index.ts";
import { formatBytes } from "../lib/table.ts";
import { mendLayouts, type Problem, problemOf } from "./problems.ts";

/** What is installed, before a kernel has run. */
export interface Installation {
  readonly versions: Readonly<Record<string, string>>;
  /** Variables of the environment that the library reads, where they are set. */
  readonly settings: Readonly<Record<string, string>>;
  readonly library: { readonly places: readonly string[]; readonly abiVersion: number | undefined };
  readonly device: DeviceInfo | undefined;
  /** What runs kernels of one's own whose lanes work together; why there is none, where none can be compiled. */
  readonly executor: string | undefined;
  /** Structs whose layouts were compared. */
  readonly structs: number;
  readonly problems: readonly Problem[];
}

/**
 * Looks for the library, compares layouts, and opens the device, which the
 * caller disposes. Throws nothing: what is wrong becomes a problem.
 */
export function inspectInstallation(): { installation: Installation; device: Device | undefined } {
  const problems: Problem[] = [];
  const attempt = <T>(action: () => T): T | undefined => {
    try {
      return action();
    } catch (error) {
      problems.push(problemOf(error));
      return undefined;
    }
  };
  const { native, places } = searchLibrary();
  const layouts = native === undefined ? undefined : attempt(() => checkLayouts(native));
  for (const fault of layouts?.faults ?? []) problems.push({ what: `layout: ${fault}`, mend: mendLayouts });
  // A library of other layouts must get no calls. Without a library, opening says what is wrong.
  const mayOpen = native === undefined || layouts?.faults.length === 0;
  const device = mayOpen ? attempt(() => Device.open()) : undefined;
  const installation: Installation = {
    versions: versions(),
    settings: settings(),
    library: { places, abiVersion: layouts?.abiVersion },
    device: device?.info,
    executor: device === undefined ? undefined : executorOfOwnKernels(),
    structs: layouts?.structs ?? 0,
    problems,
  };
  return { installation, device };
}

const sample = `
#include <metal_stdlib>
kernel void doctor_sum(device float *x [[buffer(0)]]) { x[0] = metal::simd_sum(x[0]); }`;

/** By a small kernel, on a device of its own: a device keeps what is registered. */
function executorOfOwnKernels(): string {
  try {
    using device = Device.open();
    device.registerSource("doctor.metal", sample);
    using pipeline = device.pipeline("doctor_sum");
    return pipeline.executor;
  } catch (error) {
    return `none: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function versions(): Record<string, string> {
  return {
    "metal-attention": manifest.version,
    "ABI of this package": String(abiVersion),
    Bun: `${Bun.version} (${Bun.revision.slice(0, 9)})`,
    system: `${process.platform} ${release()} ${process.arch}`,
    processor: `${cpus()[0]?.model.trim() ?? "unknown"}, ${cpus().length} threads, ${formatBytes(totalmem())}`,
  };
}

function settings(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) => /^(METAL_ATTENTION|SOFTMETAL|MTL)_/.test(name));
  return Object.fromEntries(names.sort().map((name) => [name, process.env[name] ?? ""]));
}
