import { checkPath, failed } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import { packMACopyArgs, structSizes } from "../ffi/generated/structs.ts";
import { type PassInfo, readPassInfo } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import { markVersion, notOurs, passState } from "../identity.ts";
import { setRecorder } from "../parameter.ts";
import { type DispatchDescription, describePass, timedDispatches } from "./describe.ts";
import type { Device } from "./device.ts";
import { type DispatchOptions, encodeDispatch } from "./dispatch.ts";
import { inspectSymbol } from "./inspect.ts";
import type { Pipeline } from "./kernels.ts";
import { checkMade, disposedError, net, PassLifetime } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";
import { traceOf } from "./trace.ts";

/**
 * Options of `Device.pass`. In mode `concurrent` (the default) dispatches
 * overlap, with a barrier where two conflict; in mode `serial` each ends
 * before the next begins. The results are the same. `profile: true` measures
 * the device's time of each dispatch, for `describe` and `trace`, by counters
 * between dispatches where the GPU has them, else, as on an Apple GPU, with an
 * encoder for each. Nothing overlaps then, and each takes somewhat longer.
 */
export interface PassOptions {
  readonly mode?: "concurrent" | "serial" | undefined;
  readonly profile?: boolean | undefined;
}

const infoBlock = new Block(structSizes.MAPassInfo);
const copyBlock = new Block(structSizes.MACopyArgs);

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
    lifetime.recorder?.begin();
    setRecorder(lifetime.recorder);
    return lifetime;
  }

  /** @internal Has `encode` append an operation, which may take parameters, to the pass that a caller gave it. */
  static encode<Args>(pass: Pass, args: Args, encode: (lifetime: PassLifetime, args: Args) => void): void {
    const lifetime = Pass.use(pass);
    try {
      encode(lifetime, args);
    } finally {
      // By whatever error it may have ended, a getter's of the caller among them.
      lifetime.recorder?.settle();
    }
  }

  /**
   * Appends a dispatch of any kernel.
   *
   * Errors: `invalid-argument` for a missing, surplus or malformed argument, or
   * an access that the kernel's signature contradicts; `overflow` for 2^32 threads
   * or more along a dimension; `buffer-too-small`, `invalid-state` after a commit,
   * `disposed`.
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
   * Appends a copy of all elements of one tensor to another of the same dtype and as many elements, of any shape: a
   * part of either by `slice`. It is how values come to private storage and from it.
   *
   * Errors: `unsupported` for another dtype; `invalid-argument` for another number of elements, or two places that
   * overlap; `invalid-state` after a commit, `disposed`.
   *
   * @example
   * using staged = device.tensor("f16", [nTokens, headDim]).set(values);
   * pass.copy(staged, weights); // from device.tensor("f16", [nTokens, headDim], { storage: "private" })
   */
  copy(from: Tensor, to: Tensor): void {
    const { native, handle, device } = Pass.use(this);
    const source = Tensor.use(from, device, "from");
    const target = Tensor.use(to, device, "to");
    packMACopyArgs(copyBlock, 0, { from: source, to: target });
    checkStatus(native, native.ma_copy(handle, copyBlock.address));
  }

  /**
   * Sends the pass to the device. The promise resolves when it has completed,
   * and rejects with `execution` when the device reports an error, or with
   * `invalid-state` when the pass was committed before, reads tile classes
   * that are not made yet or are stale by now, or writes tokens of a `KvCache`
   * whose step was abandoned. Disposing the pass or
   * the device meanwhile is safe: both stay until the promise settles.
   */
  async commit(): Promise<void> {
    await Pass.use(this).commit();
  }

  /** As `commit`, but blocks until the pass has completed. */
  commitAndWait(): void {
    const lifetime = Pass.use(this);
    lifetime.checkCommit();
    const { native, handle } = lifetime;
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

  /**
   * The dispatches encoded so far: to count them in a test, to see what
   * overlaps, or, of a profiled pass that has completed, where the time went.
   *
   * @example
   * console.table(pass.describe());
   */
  describe(): DispatchDescription[] {
    return describePass(Pass.use(this));
  }

  /**
   * Writes what happened when into a file for Perfetto or chrome://tracing: the
   * host's encoding, the wait for the device, and there each dispatch, in a lane
   * for its kind of operation, with bytes and GB/s.
   *
   * Errors: `invalid-state` unless the pass was profiled and has completed; `invalid-argument` for what is no path, or
   * with the system's reason where the file cannot be written.
   *
   * @example
   * using pass = device.pass({ profile: true });
   * flashAttnPrefill(pass, { q, k, v, out });
   * await pass.commit();
   * await pass.trace("attention.trace.json");
   */
  async trace(path: string): Promise<void> {
    const lifetime = Pass.use(this);
    checkPath(path);
    const info = readInfo(lifetime);
    const dispatches = timedDispatches(lifetime);
    const isTimed = dispatches.every(({ startTime }) => startTime !== undefined);
    if (info.state !== "completed" || !isTimed) {
      throw new MetalAttentionError(
        "invalid-state",
        `a ${info.state} pass has no times to write; open it by device.pass({ profile: true }) and let it complete`,
      );
    }
    try {
      await Bun.write(path, traceOf(this.device.info.name, info, dispatches));
    } catch (error) {
      throw failed(path, error);
    }
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
