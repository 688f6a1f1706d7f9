import { ptr } from "bun:ffi";
import { readdirSync } from "node:fs";
import { Block } from "../../src/ffi/block.ts";
import { errorCodes, failureCodes } from "../../src/ffi/generated/codes.ts";
import type { Native } from "../../src/ffi/library.ts";
import { readDeviceInfo } from "../../src/ffi/records.ts";
import { encoders } from "./encoders.ts";
import { type Argument, type Attempt, type FuzzedFunction, functions, type Scene } from "./functions.ts";
import { Random } from "./random.ts";
import { sharedFunctions } from "./shared.ts";
import { structShapes } from "./structs.ts";
import type { Trace } from "./trace.ts";
import { World } from "./world.ts";

/** The largest that any machine has. */
const pageSize = 16384;

/** Calls of one function by outcome. */
export interface Count {
  ok: number;
  refused: number;
}

export type Counts = Record<string, Count>;

/** Every function under test. */
export const table: readonly FuzzedFunction[] = [...functions, ...sharedFunctions, ...encoders];
const totalWeight = table.reduce((sum, { weight }) => sum + weight, 0);
const opening = table.find(({ name }) => name === "ma_device_open") ?? fail("ma_device_open is missing");
const nullChance = 0.03;
/** Bytes of results that a call may write. */
const resultBytes = 192;
const sentinel = 0xa5;

/** One world from its first device to its last, as a seed decides. */
export class Session {
  readonly #native: Native;
  readonly #trace: Trace;
  readonly #counts: Counts;
  readonly #scene: Scene;
  readonly #message = new Block(4096);

  constructor(native: Native, seed: number, trace: Trace, counts: Counts) {
    this.#native = native;
    this.#trace = trace;
    this.#counts = counts;
    const random = new Random(seed);
    this.#scene = {
      native,
      random,
      world: new World(random),
      shapes: structShapes(native),
      out: new Block(resultBytes),
      text: new Block(16384),
      address: (bytes) => Number(ptr(bytes)),
    };
  }

  /** Makes `calls` calls; throws at the first that breaks the contract of the C header. */
  run(calls: number): void {
    for (let made = 0; made < calls; ) {
      const target = this.#choose();
      const attempt = target.attempt(this.#scene);
      if (attempt === undefined) continue;
      this.#call(target, attempt);
      made++;
    }
  }

  /** Releases all that is open, and checks that each device has its memory back. */
  close(): void {
    const { world, out } = this.#scene;
    for (const device of world.devices) {
      for (const pass of device.passes) {
        if (pass.committed) this.#native.ma_pass_wait(pass.handle);
        this.#expectOk(this.#native.ma_pass_release(pass.handle), "ma_pass_release");
      }
      for (const { handle } of device.pipelines)
        this.#expectOk(this.#native.ma_pipeline_release(handle), "ma_pipeline_release");
      for (const { handle } of device.buffers)
        this.#expectOk(this.#native.ma_buffer_release(handle), "ma_buffer_release");
    }
    // A device may have memory of another's.
    for (const { handle } of world.devices) this.#drain(handle);
    for (const { handle } of world.devices) {
      this.#expectOk(this.#native.ma_device_info(handle, out.bytes), "ma_device_info");
      const { currentAllocatedSize, scratchLength } = readDeviceInfo(out);
      // Scratch stays, and a page that is bound for absent tensors, each between its guard zones where there are any.
      const zones = process.env["SOFTMETAL_GUARD"] === "1" ? 2 : 0;
      const scratch = scratchLength > 0 ? Math.ceil(scratchLength / pageSize) + zones : 0;
      const placeholder = 1 + zones;
      if (currentAllocatedSize > (scratch + placeholder) * pageSize) {
        throw new Error(`a device with nothing open holds ${currentAllocatedSize} bytes, ${scratchLength} of scratch`);
      }
    }
    for (const { handle } of world.devices) this.#expectOk(this.#native.ma_device_close(handle), "ma_device_close");
  }

  /** Waits for passes that were released while they ran: a queue ends its passes in order. */
  #drain(device: number): void {
    const { out } = this.#scene;
    this.#expectOk(this.#native.ma_pass_create(device, 0, out.bytes), "ma_pass_create");
    const last = out.u32[0] ?? 0;
    this.#expectOk(this.#native.ma_pass_commit(last), "ma_pass_commit");
    this.#expectOk(this.#native.ma_pass_wait(last), "ma_pass_wait");
    this.#expectOk(this.#native.ma_pass_release(last), "ma_pass_release");
  }

  #choose(): FuzzedFunction {
    // Without a device there is nothing but wrong handles.
    if (this.#scene.world.devices.length === 0) return opening;
    let position = (this.#scene.random.below(2 ** 32) / 2 ** 32) * totalWeight;
    for (const target of table) {
      position -= target.weight;
      if (position < 0) return target;
    }
    throw new Error("no function has a weight");
  }

  #call(target: FuzzedFunction, attempt: Attempt): void {
    const { random, out } = this.#scene;
    const { name, pointers = [] } = target;
    const args = [...attempt.args];
    let { expect } = attempt;
    const absent = random.chance(nullChance) ? random.maybe(pointers) : undefined;
    if (absent !== undefined && args[absent] !== null) {
      args[absent] = null;
      expect = isOptional(name, absent, args) ? expect : "refused";
    }
    this.#trace.begin(`${name}(${args.map((argument) => this.#display(argument)).join(", ")}) expecting ${expect}`);
    out.bytes.fill(sentinel);
    const status = (this.#native[name] as (...args: readonly Argument[]) => number)(...args);
    this.#counts[name] ??= { ok: 0, refused: 0 };
    const count = this.#counts[name];
    if (status === 0) {
      count.ok++;
      if (expect === "refused") throw new Error(`${name} returned MA_OK for a call that has to be refused`);
      attempt.done?.();
      return;
    }
    count.refused++;
    this.#checkRefusal(name, status, expect);
  }

  /**
   * A refusal has a code of the header, the function that refused, a message
   * that names the argument at fault where there is one, and no effect on the
   * results.
   */
  #checkRefusal(name: string, status: number, expect: Attempt["expect"]): void {
    const code = Object.entries(errorCodes).find(([, value]) => value === status)?.[0];
    if (code === undefined) throw new Error(`${name} returned ${status}, which the header does not list`);
    const message = this.#failure(failureCodes.message);
    const argument = this.#failure(failureCodes.argument);
    const refuser = this.#failure(failureCodes.function);
    if (refuser !== name || message === "" || message.startsWith("ma_") || !message.includes(argument))
      throw new Error(`${name} left the message "${message}" of ${refuser}, argument "${argument}"`);
    if (expect === "ok") throw new Error(`${name} returned ${code} for a valid call: ${message}`);
    if (!this.#scene.out.bytes.every((byte) => byte === sentinel))
      throw new Error(`${name} failed and yet wrote a result`);
  }

  /** A part of the last failure, read into as much memory as chance allows and then whole. */
  #failure(part: number): string {
    const { bytes } = this.#message;
    const capacity = this.#scene.random.below(bytes.length);
    bytes.fill(sentinel);
    this.#native.ma_last_error(part, bytes, capacity);
    if (bytes.subarray(capacity).some((byte) => byte !== sentinel))
      throw new Error(`ma_last_error wrote beyond ${capacity} bytes`);
    const cut = capacity === 0 ? "" : this.#message.getString(0, capacity);
    const length = this.#native.ma_last_error(part, bytes, bytes.length);
    const text = this.#message.getString(0, bytes.length);
    if (!text.startsWith(cut) || Buffer.byteLength(text) !== Math.min(length, bytes.length - 1))
      throw new Error(`ma_last_error gave "${cut}" of ${capacity} bytes, and "${text}" of ${length}`);
    return text;
  }

  #display(argument: Argument): string {
    if (argument === null) return "NULL";
    if (typeof argument !== "object") return String(argument);
    const { out, text } = this.#scene;
    if (argument.buffer === out.buffer) return "out";
    return argument.buffer === text.buffer ? "text" : Buffer.from(argument).toString("hex");
  }

  #expectOk(status: number, name: string): void {
    if (status !== 0) throw new Error(`${name} returned ${status} while the session closed`);
  }
}

function fail(text: string): never {
  throw new Error(text);
}

/** An empty list and an empty text may be at NULL. */
function isOptional(name: string, index: number, args: readonly Argument[]): boolean {
  return name.startsWith("ma_pipeline_create") && index === 2 && args[3] === 0;
}

/** Threads and open files of this process. */
export function processObjects(): { readonly threads: number; readonly files: number } {
  if (process.platform !== "linux") return { threads: 0, files: 0 };
  return { threads: readdirSync("/proc/self/task").length, files: readdirSync("/proc/self/fd").length };
}
