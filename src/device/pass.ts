import { Block } from "../ffi/block.ts";
import { structSizes } from "../ffi/generated/structs.ts";
import { type DispatchForm, type Extent3, type PassInfo, readPassInfo } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { readText } from "../ffi/text.ts";
import { markVersion, notOurs, passState } from "../identity.ts";
import type { Device } from "./device.ts";
import { type DispatchOptions, encodeDispatch } from "./dispatch.ts";
import { inspectSymbol } from "./inspect.ts";
import type { Pipeline } from "./kernels.ts";
import { checkMade, disposedError, net, PassLifetime } from "./lifetime.ts";

/**
 * Options of `Device.pass`. In mode `concurrent` (the default) dispatches
 * overlap, with a barrier where two conflict; in mode `serial` each ends
 * before the next begins. The results are the same.
 */
export interface PassOptions {
  readonly mode?: "concurrent" | "serial" | undefined;
}

/** A byte range of a buffer that a dispatch reads or writes. */
export interface BufferRange {
  /** Number of the buffer, the same for a tensor and its slices. */
  readonly buffer: number;
  /** Bytes. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
}

/** One dispatch of a pass, as `Pass.describe` gives it. */
export interface DispatchDescription {
  /** Kind of operation. */
  readonly op: string;
  /** Name of the kernel that runs. */
  readonly kernel: string;
  /** What runs it: `GPU`, or on the software device `loop`, `vectors`, or `fibres` with the reason. */
  readonly executor: string;
  /** What `grid` counts. */
  readonly form: DispatchForm;
  readonly grid: Extent3;
  readonly threadsPerThreadgroup: Extent3;
  readonly reads: readonly BufferRange[];
  readonly writes: readonly BufferRange[];
  /** Whether the dispatch waits for those before it. */
  readonly barrierBefore: boolean;
}

/** Polls on every turn of the event loop at first, then every millisecond. */
const eagerPolls = 64;

const infoBlock = new Block(structSizes.MAPassInfo);

/**
 * A list of dispatches that goes to the device as one. Operations append to it
 * until it is committed; a pass is committed once.
 *
 * @example
 * using pass = device.pass();
 * kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 });
 * await pass.commit();
 * console.log(pass.info.gpuTime);
 */
export class Pass {
  /** The device that made it, which it keeps open. */
  readonly device: Device;
  readonly #lifetime: PassLifetime;

  /** @internal Use `Device.pass`. */
  constructor(device: Device, lifetime: PassLifetime) {
    this.device = device;
    this.#lifetime = checkMade(lifetime, PassLifetime, "Device.pass()");
    net.register(this, lifetime, this);
  }

  /** @internal */
  get [passState](): PassLifetime | undefined {
    return #lifetime in this ? this.#lifetime : undefined;
  }

  /** @internal The usable pass that a caller gave an operation. */
  static use(value: unknown): PassLifetime {
    const lifetime =
      typeof value === "object" && value !== null
        ? (value as { readonly [passState]?: PassLifetime })[passState]
        : undefined;
    if (lifetime === undefined) throw notOurs(value, "a Pass", "pass");
    if (lifetime.disposed) throw disposedError("the pass", "pass");
    if (lifetime.device.disposed) throw disposedError("the pass's device", "pass");
    return lifetime;
  }

  /**
   * Appends a dispatch of any kernel.
   *
   * Errors: `invalid-argument` for a missing, surplus or malformed argument, or
   * an access that the kernel's signature contradicts; `buffer-too-small`,
   * `invalid-state` after a commit, `disposed`.
   *
   * @example
   * pass.dispatch(saxpy, {
   *   buffers: { 0: { tensor: x, access: "read" }, 1: y },
   *   bytes: { 2: new Float32Array([2]) },
   *   grid: x.length,
   *   threads: 256,
   * });
   */
  dispatch(pipeline: Pipeline, options: DispatchOptions): void {
    encodeDispatch(Pass.use(this), pipeline, options);
  }

  /**
   * Sends the pass to the device. The promise resolves when it has completed,
   * and rejects with `execution` when the device reports an error, or with
   * `invalid-state` when the pass was committed before, or reads tile classes
   * that are not made yet or are stale by now. Disposing the pass or
   * the device meanwhile is safe: both stay until the promise settles.
   */
  async commit(): Promise<void> {
    const lifetime = Pass.use(this);
    checkStatus(lifetime.native, lifetime.native.ma_pass_commit(lifetime.handle));
    lifetime.beginPending();
    try {
      await ended(lifetime);
    } finally {
      lifetime.endPending();
    }
  }

  /** As `commit`, but blocks until the pass has completed. */
  commitAndWait(): void {
    const { native, handle } = Pass.use(this);
    checkStatus(native, native.ma_pass_commit(handle));
    checkStatus(native, native.ma_pass_wait(handle));
  }

  /** Blocks until a committed pass has completed. Errors: `execution`; `invalid-state` before a commit. */
  wait(): void {
    const { native, handle } = Pass.use(this);
    checkStatus(native, native.ma_pass_wait(handle));
  }

  /** State and device times, without waiting. */
  get info(): PassInfo {
    return readInfo(Pass.use(this));
  }

  /** The dispatches encoded so far: to count them in a test, or to see what overlaps. */
  describe(): DispatchDescription[] {
    const { native, handle } = Pass.use(this);
    const json = readText((buffer, capacity, needed) =>
      checkStatus(native, native.ma_pass_describe(handle, buffer, capacity, needed)),
    );
    return JSON.parse(json) as DispatchDescription[];
  }

  /** Ends the use of the pass; one in flight goes on to its end. A second call does nothing. */
  dispose(): void {
    net.unregister(this);
    this.#lifetime.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** What `console.log` shows: state, number of dispatches, and the time on the device once it is known. */
  [inspectSymbol](): string {
    if (!(#lifetime in this)) return "Pass";
    if (this.#lifetime.disposed || this.#lifetime.device.disposed) return "Pass (disposed)";
    const { state, dispatches, gpuTime } = this.info;
    const time = state === "completed" ? `, ${Number((gpuTime * 1e3).toPrecision(4))} ms` : "";
    return `Pass (${state}, ${dispatches} ${dispatches === 1 ? "dispatch" : "dispatches"}${time})`;
  }
}

markVersion(Pass);

function readInfo({ native, handle }: PassLifetime): PassInfo {
  checkStatus(native, native.ma_pass_info(handle, infoBlock.address));
  return readPassInfo(infoBlock);
}

/** Resolves when a committed pass has completed, by polling: the library makes no calls into JavaScript. */
async function ended(pass: PassLifetime): Promise<void> {
  for (let polls = 0; ; polls++) {
    const { state } = readInfo(pass);
    if (state === "completed") return;
    // Waiting for a pass that has failed returns at once, with its error.
    if (state === "failed") return checkStatus(pass.native, pass.native.ma_pass_wait(pass.handle));
    if (polls < eagerPolls) await new Promise((resolve) => setImmediate(resolve));
    else await Bun.sleep(1);
  }
}
