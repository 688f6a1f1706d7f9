import { checkObject, checkText, checkU32, refused } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import { packMARun, packMATensor, structSizes } from "../ffi/generated/structs.ts";
import { checkStatus } from "../ffi/status.ts";
import { encodeText } from "../ffi/text.ts";
import { didYouMean, OptionNames } from "../optionNames.ts";
import { Parameter, type Recorder, type RunObserver } from "../parameter.ts";
import { type DispatchDescription, describePass } from "./describe.ts";
import type { Device } from "./device.ts";
import { inspectSymbol } from "./inspect.ts";
import { checkMade, disposedError, net, PassLifetime } from "./lifetime.ts";
import { Pass } from "./pass.ts";
import { Tensor, type TensorRange } from "./tensor.ts";

/** Least and most of a parameter; `value` is what it is in a run that does not give it. */
export interface ParameterOptions {
  readonly min: number;
  readonly max: number;
  readonly value?: number | undefined;
}

const parameterNames = new OptionNames<ParameterOptions>("pass.parameter", { min: true, max: true, value: true });

/** What a run gives, by name: numbers for parameters, tensors in place of named ones. */
export type RunValues = Readonly<Record<string, number | Tensor>>;

/** A tensor that a run may replace. */
interface NamedTensor {
  readonly tensor: Tensor;
  readonly range: TensorRange;
}

/** What has been declared and used while a pass was recorded. */
class Declarations implements Recorder {
  readonly lifetime: PassLifetime;
  readonly parameters: { readonly name: string; readonly value: number | undefined }[] = [];
  readonly named = new Map<string, NamedTensor>();
  readonly tensors = new Set<Tensor>();
  readonly observers: RunObserver[] = [];
  /** Whether the library has uses of an operation that was not encoded yet. */
  #hasUses = false;
  /** Whether an operation has taken a parameter and is neither encoded nor refused. */
  #isAtWork = false;

  constructor(lifetime: PassLifetime) {
    this.lifetime = lifetime;
  }

  /** Errors: `invalid-state` within another operation, which a getter among its arguments has called. */
  begin(): void {
    if (this.#isAtWork) {
      throw new MetalAttentionError(
        "invalid-state",
        "pass: an operation begins while another, which takes a parameter, reads its arguments; encode one after the other",
        { argument: "pass" },
      );
    }
    if (!this.#hasUses) return;
    // The operation before may have been refused before it came to the library.
    const { native, handle } = this.lifetime;
    checkStatus(native, native.ma_record_use(handle, 0, null));
    this.#hasUses = false;
  }

  noteTensor(tensor: object): void {
    this.tensors.add(tensor as Tensor);
  }

  noteUse({ place }: Parameter, argument: string): void {
    const { native, handle } = this.lifetime;
    this.#hasUses = true;
    checkStatus(native, native.ma_record_use(handle, place, encodeText(argument).block.bytes));
    this.#isAtWork = true;
  }

  settle(): void {
    this.#isAtWork = false;
  }

  observe(observer: RunObserver): void {
    this.observers.push(observer);
  }

  end(): void {
    for (const observer of this.observers) observer.noteEnd();
  }

  parameter(name: string, { min, max, value }: ParameterOptions): Parameter {
    const [least, most] = [checkU32(min, "min"), checkU32(max, "max")];
    if (value !== undefined && (checkU32(value, "value") < least || value > most)) {
      throw refused("value", `${value} is not from ${least} to ${most}`);
    }
    const { native, handle } = this.lifetime;
    const out = new Block(8);
    const label = encodeText(checkText(name, "name")).block.bytes;
    checkStatus(native, native.ma_record_scalar(handle, label, least, most, out.bytes));
    this.parameters.push({ name, value });
    return new Parameter(name, out.u32[0] as number, value ?? least, least, most, this);
  }

  name(name: string, tensor: Tensor): void {
    const { native, handle, device } = this.lifetime;
    const range = Tensor.use(tensor, device, "tensor");
    const out = new Block(8);
    const packed = new Block(structSizes.MATensor);
    packMATensor(packed, 0, range);
    checkStatus(
      native,
      native.ma_record_tensor(handle, encodeText(checkText(name, "name")).block.bytes, packed.bytes, out.bytes),
    );
    this.named.set(name, { tensor, range });
  }
}

/** The pass that `Device.record` hands out, which takes the same operations as any. */
export class RecordingPass extends Pass {
  readonly #declarations: Declarations;

  /** @internal Use `Device.record`. */
  constructor(device: Device, lifetime: PassLifetime) {
    super(device, lifetime);
    this.#declarations = new Declarations(lifetime);
    lifetime.recorder = this.#declarations;
  }

  /**
   * Declares a number that each run gives, for an operation to take as a
   * position, a length or the like (an integer of 32 bits), or a dispatch as
   * 4 of its `bytes`. Its range, and what it means for the tensors, are checked
   * with each run. While recording, `value` or else `min` stands for it; it
   * cannot be computed with.
   *
   * Errors: `invalid-argument` for a range that is none, or a name that is taken.
   *
   * @example
   * const seqPos = pass.parameter("seqPos", { min: 0, max: capacity - 1 });
   * kvCacheCopyBatch(pass, { src, cache, seqPos });
   */
  parameter(name: string, options: ParameterOptions): number {
    Pass.use(this);
    parameterNames.check(checkObject(options, "options"));
    // A number to whoever takes it: `checkU32` sees to that.
    return this.#declarations.parameter(name, options) as unknown as number;
  }

  /**
   * Names a tensor, in whose place a run may put another of the same dtype and
   * shape: wherever operations use it, or a slice of it, from here on. Gives it back.
   *
   * @example
   * const src = pass.tensor("src", tokens);
   */
  tensor<T extends Tensor>(name: string, tensor: T): T {
    Pass.use(this);
    this.#declarations.name(name, tensor);
    return tensor;
  }

  /** @internal Ends the recording: what is encoded into the pass from now on is refused. */
  static finish(pass: RecordingPass): RecordedPass {
    const declarations = pass.#declarations;
    const { lifetime } = declarations;
    if (lifetime.disposed) throw disposedError("the pass", "pass");
    if (lifetime.device.disposed) throw disposedError("the pass's device", "pass");
    net.unregister(pass);
    const recorded = new RecordedPass(pass.device, lifetime.takeOver(), declarations);
    for (const observer of declarations.observers) observer.noteRecorded();
    return recorded;
  }
}

/**
 * Operations that were checked and encoded once, to be run as often as wanted:
 * with one call of the library, whatever their number.
 *
 * A run checks again only the operations that take a parameter or a replaced
 * tensor. Several runs may be in flight; they go to the device in the order of
 * their commits. The tensors that it uses have to stay: once one is disposed,
 * a run is an error.
 *
 * @example
 * using step = device.record((pass) => {
 *   const seqPos = pass.parameter("seqPos", { min: 0, max: capacity - 1 });
 *   kvCacheCopyBatch(pass, { src, cache, seqPos });
 * });
 * for (let seqPos = 0; seqPos < 100; seqPos++) await step.commit({ seqPos });
 */
export class RecordedPass {
  /** The device that made it, which it keeps open. */
  readonly device: Device;
  readonly #lifetime: PassLifetime;
  readonly #parameters: Declarations["parameters"];
  readonly #named: readonly (NamedTensor & { readonly name: string })[];
  /** What a run may give. */
  readonly #names: readonly string[];
  readonly #tensors: readonly Tensor[];
  readonly #observers: readonly RunObserver[];
  readonly #scalars: Block;
  readonly #ranges: Block;
  readonly #run = new Block(structSizes.MARun);
  readonly #out = new Block(8);

  /** @internal Use `Device.record`. */
  constructor(device: Device, lifetime: PassLifetime, declarations: Declarations) {
    this.device = device;
    this.#lifetime = checkMade(lifetime, PassLifetime, "Device.record()");
    this.#parameters = declarations.parameters;
    this.#named = [...declarations.named].map(([name, named]) => ({ name, ...named }));
    this.#names = [...this.#parameters, ...this.#named].map(({ name }) => name);
    this.#tensors = [...declarations.tensors];
    this.#observers = declarations.observers;
    this.#scalars = new Block(4 * Math.max(1, this.#parameters.length));
    this.#ranges = new Block(structSizes.MATensor * Math.max(1, this.#named.length));
    packMARun(this.#run, 0, {
      scalars: this.#scalars.address,
      tensors: this.#ranges.address,
      scalarCount: this.#parameters.length,
      tensorCount: this.#named.length,
      notify: 0,
    });
    net.register(this, lifetime, this);
  }

  /**
   * Runs it once more; the promise resolves when that has completed.
   *
   * Errors: as those of the operations, where values do not suit the tensors;
   * `invalid-argument` for a name that is not known, a number that is missing
   * or beyond its range, a tensor of another dtype or shape; `invalid-handle` for
   * a tensor of another device; `disposed`; `execution`.
   *
   * @example
   * await step.commit({ seqPos: 17 });
   */
  async commit(values?: RunValues): Promise<void> {
    const run = this.#observed(this.#start(values, 1));
    const completed = run.completed();
    run.dispose();
    await completed;
  }

  /** As `commit`, but blocks until the run has completed. */
  commitAndWait(values?: RunValues): void {
    const handle = this.#start(values, 0);
    const { native } = this.#lifetime;
    // Nobody asks what becomes of it: without an object.
    const run = this.#observers.length === 0 ? undefined : this.#observed(handle);
    const status = native.ma_pass_wait(handle);
    try {
      checkStatus(native, status);
    } finally {
      if (run === undefined) native.ma_pass_release(handle);
      else run.dispose();
    }
  }

  /** The dispatches as they were recorded. */
  describe(): DispatchDescription[] {
    return describePass(this.#usable());
  }

  /** Ends its use; runs in flight go on. A second call does nothing. */
  dispose(): void {
    net.unregister(this);
    this.#lifetime.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** What `console.log` shows: the number of dispatches and what a run may give. */
  [inspectSymbol](): string {
    if (!(#lifetime in this)) return "RecordedPass";
    if (this.#lifetime.disposed || this.#lifetime.device.disposed) return "RecordedPass (disposed)";
    const count = this.describe().length;
    const takes = this.#names.length === 0 ? "" : `, takes ${this.#names.join(", ")}`;
    return `RecordedPass (${count} ${count === 1 ? "dispatch" : "dispatches"}${takes})`;
  }

  #usable(): PassLifetime {
    const lifetime = this.#lifetime;
    if (lifetime.disposed) throw disposedError("the recorded pass");
    if (lifetime.device.disposed) throw disposedError("the recorded pass's device");
    return lifetime;
  }

  /** A run that was committed, made known to those who asked. */
  #observed(handle: number): PassLifetime {
    const run = new PassLifetime(this.#lifetime.device, handle);
    run.isWatched = this.#observers.length > 0;
    for (const observer of this.#observers) observer.noteRun(run);
    return run;
  }

  /** Encodes and commits a run; gives its handle. */
  #start(values: RunValues | undefined, notify: 0 | 1): number {
    const { native, handle, device } = this.#usable();
    // All that is given is read before any of it is used: a getter of the caller's may run this pass too.
    const given: RunValues | undefined = values === undefined ? undefined : { ...checkObject(values, "values") };
    for (const observer of this.#observers) observer.beforeRun(given ?? {});
    if (given !== undefined || this.#parameters.length > 0) this.#pack(given ?? {});
    else if (this.#named.length > 0) this.#ranges.u32.fill(0);
    this.#checkTensors();
    if (notify === 1) device.completions.open();
    this.#run.u32[structSizes.MARun / 4 - 2] = notify;
    checkStatus(native, native.ma_record_run(handle, this.#run.address, this.#out.address));
    return this.#out.u32[0] as number;
  }

  #pack(given: RunValues): void {
    for (const name of Object.keys(given)) {
      const known = this.#names;
      if (!known.includes(name)) {
        const takes = known.length === 0 ? "no values" : known.join(", ");
        throw refused(name, `the pass takes nothing of that name${didYouMean(name, known)}; it takes ${takes}`);
      }
    }
    const numbers = this.#parameters.map(({ name, value }) => {
      const number = given[name] === undefined ? value : given[name];
      if (number === undefined) throw refused(name, "missing; give a number with each run");
      return checkU32(number, name);
    });
    const ranges = this.#named.map(({ name, tensor, range }) => {
      const other = given[name];
      if (other === undefined) return undefined;
      const used = Tensor.use(other, this.#lifetime.device, name);
      const { dtype, shape } = other as Tensor;
      if (used.dtype !== range.dtype || !Bun.deepEquals(used.shape, range.shape)) {
        throw refused(name, `expected ${tensor.dtype} [${tensor.shape}] as recorded, got ${dtype} [${shape}]`);
      }
      return used;
    });
    numbers.forEach((number, place) => {
      this.#scalars.u32[place] = number;
    });
    ranges.forEach((range, place) => {
      packMATensor(this.#ranges, (place * structSizes.MATensor) / 4, range);
    });
  }

  /** The library knows memory alone, which may live on in another tensor. */
  #checkTensors(): void {
    const tensors = this.#tensors;
    for (let i = 0; i < tensors.length; i++) {
      const tensor = tensors[i] as Tensor;
      if (tensor.disposed && !this.#isReplaced(tensor)) {
        throw disposedError(`a tensor of the recorded pass (${tensor.dtype} [${tensor.shape}])`);
      }
    }
  }

  #isReplaced(tensor: Tensor): boolean {
    const place = this.#named.findIndex((named) => named.tensor === tensor);
    return place >= 0 && this.#ranges.u32[(place * structSizes.MATensor) / 4] !== 0;
  }
}
