import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import { structSizes } from "../ffi/generated/structs.ts";
import type { Native } from "../ffi/library.ts";
import { holdMemory, ownMemory, type Pointer } from "../ffi/memory.ts";
import { type PassInfo, type PassState, readPassInfo } from "../ffi/records.ts";
import { checkStatus } from "../ffi/status.ts";
import type { Recorder } from "../parameter.ts";
import { Completions } from "./completions.ts";

// Who may free what, and when. `Symbol.dispose` is the contract; under objects
// left undisposed there are a net, and for memory the collector itself.

/** What is done for an object that was collected undisposed. */
interface Collectable {
  collected(): void;
}

/** Bytes of the largest ArrayBuffer of Bun's engine. */
export const maxArrayBuffer = 2 ** 32;

const netKey = Symbol.for("metal-attention.net");
const processWide = globalThis as { [netKey]?: FinalizationRegistry<Collectable> };
processWide[netKey] ??= new FinalizationRegistry((lifetime) => lifetime.collected());

/** Frees what was never disposed. One a process: that of a module which is evaluated again would go with its objects. */
export const net = processWide[netKey];

/**
 * A native device. Closing one frees all that it owns but views that were
 * handed out, so it closes when nothing needs it: neither its `Device` nor a
 * pass whose `commit()` is pending.
 */
export class DeviceLifetime {
  readonly native: Native;
  readonly handle: number;
  /** Set by `Device.dispose`: refuse every further use. */
  disposed = false;
  /** The ends of passes whose `commit()` is pending. */
  readonly completions = new Completions(this);
  /** Those that are not disposed. */
  readonly passes = new Set<PassLifetime>();
  /** Names of the library's kernels, noted before sources of the caller's add others. */
  builtInKernels: readonly string[] | undefined;
  #closed = false;
  #holders = 1;

  constructor(native: Native, handle: number) {
    this.native = native;
    this.handle = handle;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Waits for the committed passes and ends the use of the device. A second call does nothing. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    for (const pass of this.completions.passes) pass.wait();
    this.release();
  }

  retain(): void {
    this.#holders++;
  }

  release(): void {
    this.#holders--;
    if (this.#holders > 0) return;
    for (const pass of this.passes) pass.noteClosing();
    this.#closed = true;
    this.completions.close();
    this.native.ma_device_close(this.handle);
  }

  collected(): void {
    this.release();
  }
}

/**
 * The memory of one native buffer, shared by a tensor and its slices. It is
 * released when the last tensor is disposed, or when no tensor can be reached
 * any more; once a view has been handed out, when that has been collected too.
 *
 * The collector owns it: an ArrayBuffer over all of it, or as much as one can
 * hold, which no caller ever sees, tells it the size, and releases the buffer
 * when it goes. That of private memory leads nowhere, and nobody follows it.
 */
export class BufferMemory {
  readonly device: DeviceLifetime;
  readonly handle: number;
  /** Whether the device alone sees it. */
  readonly isPrivate: boolean;
  readonly byteLength: number;
  readonly #address: Pointer;
  readonly #owned: ArrayBuffer;
  #tensors = 1;
  /** What callers were given, which they may transfer. */
  #exposed: ArrayBuffer | undefined;

  /** - `address`: of what the CPU sees; undefined of private memory. */
  constructor(device: DeviceLifetime, handle: number, address: Pointer | undefined, byteLength: number) {
    this.device = device;
    this.handle = handle;
    this.isPrivate = address === undefined;
    this.#address = address ?? nowhere;
    this.byteLength = byteLength;
    this.#owned = ownMemory(device.native, handle, this.#address, Math.min(byteLength, maxArrayBuffer));
  }

  /** Whether TypeScript can see it: shared, and no larger than an ArrayBuffer. */
  get isVisible(): boolean {
    return !this.isPrivate && this.byteLength <= maxArrayBuffer;
  }

  /** The memory, for use inside one synchronous call. Errors: `unsupported` where it is not visible. */
  get arrayBuffer(): ArrayBuffer {
    this.checkVisible();
    // A source in the same memory is known by its ArrayBuffer.
    return this.#exposed === undefined || this.#exposed.detached ? this.#owned : this.#exposed;
  }

  /** The memory, for the caller to keep: it stays valid until it is collected. Errors: `unsupported` where it is not visible. */
  expose(): ArrayBuffer {
    this.checkVisible();
    if (this.#exposed === undefined || this.#exposed.detached) {
      this.#exposed = holdMemory(this.device.native, this.handle, this.#address, this.byteLength);
    }
    return this.#exposed;
  }

  /** Errors: `unsupported` where it is not visible. */
  checkVisible(): void {
    this.checkShared();
    if (this.isVisible) return;
    throw new MetalAttentionError(
      "unsupported",
      `the tensor is in memory of ${this.byteLength} bytes, and an ArrayBuffer holds ${maxArrayBuffer}; pass.copy takes a slice to a tensor of its own`,
    );
  }

  /** Errors: `unsupported` of private memory. */
  checkShared(): void {
    if (!this.isPrivate) return;
    throw new MetalAttentionError(
      "unsupported",
      "the tensor is in private storage, which only kernels see; pass.copy takes it to a tensor of shared storage",
    );
  }

  /** Tells the library that the host has written here, which makes tile classes of a mask stale. */
  noteWrite(offset: number, length: number): void {
    this.device.native.ma_buffer_written(this.handle, offset, length);
  }

  addTensor(): void {
    this.#tensors++;
  }

  removeTensor(): void {
    this.#tensors--;
    if (this.#tensors > 0) return;
    // Held no longer, so that a view can be collected.
    this.#exposed = undefined;
    // Its contents go at once, and the buffer with them.
    this.#owned.transfer(0);
  }
}

/** In place of an address that the process does not have. */
const nowhere = 4096 as Pointer;

/** A native pass. While its `commit()` is pending, it and its device stay. */
export class PassLifetime {
  readonly device: DeviceLifetime;
  readonly native: Native;
  readonly handle: number;
  disposed = false;
  /** Whether somebody wants to know its `state` when it is disposed. */
  isWatched = false;
  /** Of a pass that is recorded. */
  recorder: (Recorder & { begin(): void; end(): void }) | undefined = undefined;
  /** Why it is not committed any more. */
  #withdrawn: string | undefined;
  /** What became of it, once it is released. */
  #endState: PassState | undefined;
  /** Whether a promise for its end is pending. */
  #isPending = false;
  /** What `forgottenDispatches` was when the device closed. */
  #forgotten = 0;

  constructor(device: DeviceLifetime, handle: number) {
    this.device = device;
    this.native = device.native;
    this.handle = handle;
    device.passes.add(this);
  }

  /** Sends the pass to the device; resolves when it has completed. Meanwhile it stays, and its device. */
  async commit(): Promise<void> {
    const { native, device, handle } = this;
    this.checkCommit();
    device.completions.open();
    checkStatus(native, native.ma_pass_commit_notify(handle));
    await this.completed();
  }

  /** Makes a commit that is still to come one that is refused. */
  withdraw(reason: string): void {
    this.#withdrawn = reason;
  }

  checkCommit(): void {
    if (this.#withdrawn === undefined || this.state !== "encoding") return;
    throw new MetalAttentionError("invalid-state", `pass: ${this.#withdrawn}`, { argument: "pass" });
  }

  /** Resolves when the pass, which was committed with notice, has completed, and rejects when it has failed. */
  async completed(): Promise<void> {
    const { native, device, handle } = this;
    device.retain();
    this.#isPending = true;
    try {
      await device.completions.ended(this);
      checkStatus(native, native.ma_pass_wait(handle));
    } finally {
      this.#isPending = false;
      if (this.disposed) this.#release();
      device.release();
    }
  }

  dispose(): void {
    if (this.disposed) return;
    this.#setDisposed();
    this.recorder?.end();
    if (!this.#isPending) this.#release();
  }

  /** The same pass for another owner; for the one before it is disposed. */
  takeOver(): PassLifetime {
    const next = new PassLifetime(this.device, this.handle);
    next.recorder = this.recorder;
    this.#setDisposed();
    return next;
  }

  collected(): void {
    warnIfForgotten(this);
    this.dispose();
  }

  /** Blocks until the committed pass has ended, well or not. */
  wait(): void {
    this.native.ma_pass_wait(this.handle);
  }

  /** Dispatches that were encoded and never committed. */
  get forgottenDispatches(): number {
    if (this.disposed || this.recorder !== undefined) return 0;
    if (this.device.closed) return this.#forgotten;
    const info = this.#info();
    return info?.state === "encoding" ? info.dispatches : 0;
  }

  /** Where it stands, or what became of it; undefined where that is known to nobody any more. */
  get state(): PassState | undefined {
    return this.#endState ?? (this.device.closed ? undefined : this.#info()?.state);
  }

  /** The library knows nothing of it once the device has closed. */
  noteClosing(): void {
    this.#forgotten = this.forgottenDispatches;
  }

  #setDisposed(): void {
    this.disposed = true;
    this.device.passes.delete(this);
  }

  #info(): PassInfo | undefined {
    const block = new Block(structSizes.MAPassInfo);
    return this.native.ma_pass_info(this.handle, block.address) === 0 ? readPassInfo(block) : undefined;
  }

  #release(): void {
    if (this.device.closed) return;
    if (this.isWatched) this.#endState = this.#info()?.state;
    this.native.ma_pass_release(this.handle);
  }
}

let hasWarned = false;

/** Says once a process that work was thrown away. */
function warnIfForgotten(pass: PassLifetime): void {
  if (hasWarned) return;
  const dispatches = pass.forgottenDispatches;
  if (dispatches === 0) return;
  hasWarned = true;
  const count = dispatches === 1 ? "1 dispatch" : `${dispatches} dispatches`;
  process.emitWarning(
    `metal-attention: a pass with ${count} was collected without commit() or dispose(); nothing of it ran`,
    { code: "METAL_ATTENTION_PASS_NOT_COMMITTED" },
  );
}

/** A native pipeline. */
export class PipelineLifetime {
  readonly device: DeviceLifetime;
  readonly handle: number;
  disposed = false;

  constructor(device: DeviceLifetime, handle: number) {
    this.device = device;
    this.handle = handle;
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    if (!this.device.closed) this.device.native.ma_pipeline_release(this.handle);
  }

  collected(): void {
    this.dispose();
  }
}

/**
 * Refuses what did not come from the library itself: the constructors of its
 * objects can be reached from JavaScript, and what they register is freed later.
 */
export function checkMade<T extends object>(lifetime: T, kind: new (...args: never[]) => T, maker: string): T {
  if (lifetime instanceof kind) return lifetime;
  throw new MetalAttentionError("invalid-argument", `not made by new; use ${maker}`);
}

/** The error for the use of something disposed. */
export function disposedError(what: string, argument?: string): MetalAttentionError {
  const message = `${what} is disposed`;
  return argument === undefined
    ? new MetalAttentionError("disposed", message)
    : new MetalAttentionError("disposed", `${argument}: ${message}`, { argument });
}
