import type { Random } from "./random.ts";

/** What a handle names. */
export type Kind = "device" | "buffer" | "pipeline" | "pass";

export interface LiveBuffer {
  readonly kind: "buffer";
  readonly handle: number;
  readonly device: LiveDevice;
  /** Bytes. */
  readonly length: number;
  /** Whether the device alone sees it. */
  readonly isPrivate: boolean;
}

export interface LivePipeline {
  readonly kind: "pipeline";
  readonly handle: number;
  readonly device: LiveDevice;
  readonly kernel: string;
}

export interface LivePass {
  readonly kind: "pass";
  readonly handle: number;
  readonly device: LiveDevice;
  committed: boolean;
  /** Whether it holds a dispatch that the device may refuse to run. */
  mayFail: boolean;
  /** Whether its commit may be refused for what others did after it was encoded. */
  mayBeRefused: boolean;
  /** Of a pass that is recorded: what its runs give. */
  readonly recorded?: {
    readonly scalars: (readonly [least: number, most: number])[];
    readonly tensors: object[];
    /** Whether the next operation is to take a number, which it may not know. */
    mayRefuse: boolean;
  };
}

export interface LiveDevice {
  readonly kind: "device";
  readonly handle: number;
  readonly buffers: LiveBuffer[];
  readonly pipelines: LivePipeline[];
  readonly passes: LivePass[];
  /** Names of the sources registered with it. */
  readonly sources: Set<string>;
  /** Whether it has given its descriptor of events. */
  hasEvents: boolean;
}

export type Live = LiveDevice | LiveBuffer | LivePipeline | LivePass;

/** Released handles that are kept to be tried again. */
const maxStale = 64;

/** What is open, by the calls that succeeded so far. */
export class World {
  readonly devices: LiveDevice[] = [];
  readonly #stale: number[] = [];
  readonly #live = new Map<number, Live>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  addDevice(handle: number): LiveDevice {
    const owned = { buffers: [], pipelines: [], passes: [] };
    const device: LiveDevice = { kind: "device", handle, ...owned, sources: new Set(), hasEvents: false };
    this.devices.push(device);
    this.#live.set(handle, device);
    return device;
  }

  add(object: LiveBuffer | LivePipeline | LivePass): void {
    if (object.kind === "buffer") object.device.buffers.push(object);
    else if (object.kind === "pipeline") object.device.pipelines.push(object);
    else object.device.passes.push(object);
    this.#live.set(object.handle, object);
  }

  remove(object: Live): void {
    if (object.kind === "device") {
      take(this.devices, object);
      for (const owned of [...object.buffers, ...object.pipelines, ...object.passes]) this.#retire(owned.handle);
    } else if (object.kind === "buffer") take(object.device.buffers, object);
    else if (object.kind === "pipeline") take(object.device.pipelines, object);
    else take(object.device.passes, object);
    this.#retire(object.handle);
  }

  isLive(handle: number, kind: Kind): boolean {
    return this.#live.get(handle)?.kind === kind;
  }

  /** The open pass of a handle. */
  pass(handle: unknown): LivePass | undefined {
    const object = this.#live.get(handle as number);
    return object?.kind === "pass" ? object : undefined;
  }

  /** Any open object of a kind. */
  any(kind: "device"): LiveDevice | undefined;
  any(kind: "buffer"): LiveBuffer | undefined;
  any(kind: "pipeline"): LivePipeline | undefined;
  any(kind: "pass"): LivePass | undefined;
  any(kind: Kind): Live | undefined;
  any(kind: Kind): Live | undefined {
    const device = this.#random.maybe(this.devices);
    if (device === undefined || kind === "device") return device;
    const owned: Record<Exclude<Kind, "device">, readonly Live[]> = {
      buffer: device.buffers,
      pipeline: device.pipelines,
      pass: device.passes,
    };
    return this.#random.maybe(owned[kind]);
  }

  /** A handle that names no open object of a kind: zero, stale, of another kind, altered or made up. */
  wrongHandle(kind: Kind): number {
    const random = this.#random;
    const other = random.pick<Kind>(["device", "buffer", "pipeline", "pass"]);
    const altered = (this.any(kind)?.handle ?? 0) ^ (1 << random.below(32));
    const candidates = [0, random.maybe(this.#stale) ?? 0, this.any(other)?.handle ?? 0, altered >>> 0, random.u32()];
    const handle = random.maybe(candidates) ?? 0;
    return this.isLive(handle, kind) ? 0 : handle;
  }

  #retire(handle: number): void {
    this.#live.delete(handle);
    this.#stale.push(handle);
    if (this.#stale.length > maxStale) this.#stale.shift();
  }
}

function take<T>(list: T[], item: T): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}
