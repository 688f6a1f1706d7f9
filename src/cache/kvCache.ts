import { checkLength, checkObject, refused } from "../checks.ts";
import { Device } from "../device/device.ts";
import { disposedError, type PassLifetime } from "../device/lifetime.ts";
import { Pass } from "../device/pass.ts";
import type { RecordingPass, RunValues } from "../device/recording.ts";
import type { Recorder } from "../parameter.ts";
import { type AppendCall, appendStep } from "./append.ts";
import { checkTurned, entriesOf, type KvAppendArgs, namedStates, useAppendArgs } from "./appendArgs.ts";
import { attendStep } from "./attend.ts";
import { type KvAttendArgs, useAttendArgs } from "./attendArgs.ts";
import { checkOptions, fillMemory, readCache, saveCache, unlike } from "./file.ts";
import { invalidState } from "./invalidState.ts";
import { type KvCacheMemory, KvMemory } from "./memory.ts";
import { type KvCacheConfig, type KvCacheOptions, readOptions, useOptions } from "./options.ts";
import { RecordedSteps } from "./recordedSteps.ts";
import { checkRopeNote, ropeNoteOf } from "./ropeNote.ts";
import { KvSequence, type SequenceOwner } from "./sequence.ts";
import { Sequences } from "./sequences.ts";
import type { SequenceState } from "./state.ts";
import { idsOf, Step, type StepEntry } from "./step.ts";
import { StepUnderWay } from "./stepUnderWay.ts";
import { Views } from "./views.ts";

/**
 * Keys and values of all layers of a model, for one or more sequences, and attention over them.
 *
 * A step appends the same tokens to every layer, attends, and ends by `advance` when its passes have completed: until
 * then lengths and contents are those before it. Formats are dense or quantized, K and V each its own; the cache is a
 * line, a ring (`window`), or pages out of a pool (`pages`).
 *
 * Errors of the constructor: `invalid-argument` for a window larger than the ring, `keep` at or above the capacity, a
 * tail of a cache that is not quantized, a dtype of K or V other than f32, f16 and bf16, and a buffer beyond
 * `device.info.maxBufferLength`; `unsupported` for other bits, packing or head size, and for `keep` with pages; `overflow`
 * for a capacity above 2^30, more than 4,096 layers or 2^20 sequences; `out-of-memory`.
 *
 * @example
 * using cache = new KvCache(device, { layers: 32, nKvHeads: 8, headDim: 128, capacity: 32768, tail: 128 });
 * using pass = device.pass();
 * for (let layer = 0; layer < 32; layer++) {
 *   cache.append(pass, layer, { k, v });
 *   cache.attend(pass, layer, { q, out });
 * }
 * await pass.commit();
 * cache.advance();
 */
export class KvCache {
  readonly device: Device;
  readonly #config: KvCacheConfig;
  readonly #memory: KvMemory;
  readonly #sequences: Sequences;
  readonly #owner: SequenceOwner;
  readonly #handles = new Map<SequenceState, KvSequence>();
  /** How the keys of each layer are turned. */
  readonly #ropeNotes: (string | undefined)[] = [];
  readonly #underWay: StepUnderWay;
  readonly #recorded: RecordedSteps;
  #isDisposed = false;

  constructor(device: Device, options: KvCacheOptions) {
    this.device = Device.use(device);
    this.#config = useOptions(options);
    this.#memory = new KvMemory(device, this.#config);
    this.#sequences = new Sequences(this.#config, this.#memory);
    this.#underWay = new StepUnderWay(device, this.#memory, this.#sequences);
    this.#recorded = new RecordedSteps(this.#memory, this.#underWay);
    this.#owner = {
      cache: this,
      sequences: this.#sequences,
      checkUsable: () => this.#checkUsable(),
      checkIdle: (what) => this.#checkIdle(what),
      handle: (state) => this.#handle(state),
    };
  }

  /** Bytes that it has on the device, scratch and tables among them. */
  get bytes(): number {
    const { rows, norms, tail, tables, scratch } = this.memory;
    return rows + norms + tail + tables + scratch;
  }

  /** The same by what they are for. */
  get memory(): KvCacheMemory {
    this.#checkUsable();
    const memory = this.#memory.bytes;
    const scratch = memory.scratch + this.#underWay.bytes;
    return { ...memory, tables: memory.tables + this.#recorded.bytes, scratch };
  }

  /** Tokens of its only sequence. Errors: `invalid-state` where there are several. */
  get length(): number {
    this.#checkUsable();
    const { live } = this.#sequences;
    if (live.length > 1) throw invalidState(`it has ${live.length} sequences; ask one of \`sequences\` for its length`);
    return live[0]?.length ?? 0;
  }

  /** The live sequences. */
  get sequences(): KvSequence[] {
    this.#checkUsable();
    return this.#sequences.live.map((state) => this.#handle(state));
  }

  /** Pages of the pool that no sequence has; 0 where the cache has no pool. */
  get freePages(): number {
    this.#checkUsable();
    this.#underWay.endDead();
    return this.#sequences.freePages;
  }

  /** Whether it was disposed. */
  get disposed(): boolean {
    return this.#isDisposed || this.device.disposed;
  }

  /** A new, empty sequence. Errors: `overflow` where as many as option `sequences` says are live. */
  sequence(): KvSequence {
    this.#checkIdle("sequence");
    return this.#handle(this.#sequences.open());
  }

  /**
   * Appends tokens to a layer, and begins a step with the first layer: gives the position of the first token, of the
   * first sequence. The others have theirs from `sequence.length`. Refused as a whole or encoded as a whole.
   *
   * Errors: `overflow` beyond the capacity, for keys that turn at a position beyond 2^24, and where the pool has too few
   * pages; `out-of-memory` for more tokens than a ring or a tail has slots for, which take memory until the step ends;
   * `invalid-state` for a second append of a layer in a step, and into a pass whose step was abandoned;
   * `invalid-argument` for a layer out of range, other tokens than the step began with, shapes that disagree, and a rope
   * other than the keys before had; `unsupported` for another dtype, and for more than 16 tokens of a sequence in a step
   * that is recorded; `invalid-handle` for a sequence of another cache.
   *
   * @example
   * cache.append(pass, layer, { k, v, rope: { theta: 500_000, pairing: "half" } });
   */
  append(pass: Pass, layer: number, args: KvAppendArgs): number {
    const lifetime = this.#usePass(pass);
    this.#checkLayer(layer);
    const { k, v, rope, sequences, counts, rows } = useAppendArgs(args, this.#config, lifetime.device);
    const note = ropeNoteOf(rope, this.#config.headDim);
    const call = { pass, layer, k, v, rope };
    const { recorder } = lifetime;
    if (recorder === undefined) this.#underWay.endDead();
    const isOpened = this.#sequences.live.length === 0;
    const states = namedStates(this, this.#sequences, sequences);
    try {
      const entries = entriesOf(states, counts, rows);
      if (recorder === undefined) this.#encode(call, lifetime, entries, note);
      else this.#record(call, recorder, entries, note);
    } catch (error) {
      if (isOpened) for (const state of states) this.#sequences.drop(state);
      throw error;
    }
    return (states[0] as SequenceState).length;
  }

  /**
   * Attention of the step's tokens over a layer, each over what its sequence has up to itself.
   *
   * Errors: `invalid-state` before the layer's append, and for a second attend of a layer after another layer's append in a
   * step of more tokens than a ring or a tail takes at once, which has memory of one layer; `invalid-argument` for shapes
   * that disagree and a window larger than the ring's; `unsupported` for another dtype, and for `isPrompt` in a step that
   * is recorded.
   *
   * @example
   * cache.attend(pass, layer, { q, out, softcap: 50 });
   */
  attend(pass: Pass, layer: number, args: KvAttendArgs): void {
    const lifetime = this.#usePass(pass);
    this.#checkLayer(layer);
    const { recorder } = lifetime;
    const recorded = recorder && this.#recorded.of(recorder);
    const step = recorder === undefined ? this.#underWay.current : recorded?.step;
    if (!step?.layers.has(layer)) {
      throw invalidState(`layer ${layer} has nothing appended in this step; append its keys and values first`);
    }
    const checked = useAttendArgs(args, this.#config, step.rows, lifetime.device);
    if (recorder !== undefined && checked.isPrompt) {
      throw refused(
        "isPrompt",
        "true in a step that is recorded, which decode attention does; leave it out",
        "unsupported",
      );
    }
    using views = new Views(recorded?.kept);
    const call = { pass, layer, views, ...checked };
    if (recorded !== undefined) {
      recorded.attend(call);
      return;
    }
    if (step.long === undefined) attendStep(this.#memory, call, step);
    else step.long.attend(call, step);
    lifetime.isWatched = true;
    step.passes.add(lifetime);
  }

  /**
   * Begins a step to be done by a run of a recorded pass, and returns the values for that run: the pass must have
   * recorded `append` and `attend` of all layers, for 1 to 16 tokens of each sequence. `advance` ends the step when the run
   * has completed; `abandon`, or whatever comes next, forgets it when it has failed. A run without `prepare` is refused,
   * and so is a second one of a step that has not failed. `nTokens`, of all sequences together, and `sequences` choose
   * among several recorded passes; of those meant the newest that fits is taken.
   *
   * Errors: `invalid-state` during a step and where none such was recorded; `overflow` as of `append`; `invalid-argument`
   * for what is no number of tokens or no list of sequences, and where keys before had another rope; `invalid-handle` for
   * a sequence of another cache. A run is refused with the values of another `prepare`.
   *
   * @example
   * using step = device.record((pass) => {
   *   cache.append(pass, 0, { k, v });
   *   cache.attend(pass, 0, { q, out });
   * });
   * await step.commit(cache.prepare());
   * cache.advance();
   */
  prepare(nTokens?: number, sequences?: readonly KvSequence[]): RunValues {
    this.#checkIdle("prepare");
    if (nTokens !== undefined) checkLength(nTokens, "nTokens");
    const states = sequences === undefined ? undefined : namedStates(this, this.#sequences, sequences);
    const recorded = this.#recorded.find(nTokens, states);
    this.#forgetRopes();
    const { ropeNotes } = recorded.step;
    for (const [layer, note] of ropeNotes.entries()) checkRopeNote(this.#ropeNotes[layer], note, layer);
    this.#sequences.reserve(recorded.step.entries);
    Object.assign(this.#ropeNotes, ropeNotes);
    const { step, values } = this.#recorded.prepare(recorded);
    this.#underWay.beginRecorded(step);
    return values;
  }

  /**
   * Ends a step whose passes have completed: its tokens belong to the sequences from now on. `nTokens`, where given, has
   * to be their number in all; `tokens` are their ids, for `match`.
   *
   * Errors: `invalid-state` without a step, before all layers were appended to, and while a pass is not completed;
   * `invalid-argument` for another `nTokens` than the step has, and for ids that are not one integer for each token.
   */
  advance(nTokens?: number, tokens?: ArrayLike<number>): void {
    this.#checkUsable();
    this.#underWay.advance(nTokens, tokens);
  }

  /**
   * Forgets the step under way, if any: lengths and contents are those before it. A pass of it that was not committed is
   * refused by its `commit` from now on.
   *
   * Errors: `invalid-state` while a pass of it is on the device.
   */
  abandon(): void {
    this.#checkUsable();
    this.#underWay.abandon();
  }

  /**
   * The longest beginning that `tokens` share with a live sequence, by the ids that `advance` was given, as far as
   * `sequence.fork(length)` can go back; undefined where none shares the first.
   *
   * Errors: `invalid-argument` for what is no list of integers.
   *
   * @example
   * const found = cache.match(promptIds);
   * const sequence = found?.sequence.fork(found.length) ?? cache.sequence();
   */
  match(tokens: ArrayLike<number>): { readonly sequence: KvSequence; readonly length: number } | undefined {
    this.#checkUsable();
    const best = this.#sequences.match(idsOf(tokens));
    return best && { sequence: this.#handle(best.state), length: best.length };
  }

  /**
   * Writes the sequences to a safetensors file: what is in use of codes, values and tails, with layout, formats, lengths,
   * how keys are turned, hashes of the codebooks and signs that codes mean, and a SHA-256 of it all.
   *
   * The file takes the place of one that is there once it is whole.
   *
   * Errors: `invalid-state` during a step; `invalid-argument` where the file cannot be written; `unsupported` for more
   * than 4 GiB.
   */
  async save(path: string): Promise<void> {
    this.#checkIdle("save");
    await saveCache(path, this.#memory, this.#sequences.live, this.#ropeNotes);
  }

  /**
   * A cache out of a file that `save` wrote, with the options that it was made with and the same bits. Options that are
   * given have to be those of the file, but for `storage`, which a file has not.
   *
   * Errors: `invalid-argument`, with both values, for a file of another version, other options, other codebooks or signs,
   * or one that was changed; `unsupported` for one of more than 4 GiB.
   *
   * @example
   * using cache = await KvCache.load(device, "prompt.safetensors", { headDim: 128 });
   */
  static async load(device: Device, path: string, expected: Partial<KvCacheOptions> = {}): Promise<KvCache> {
    // A file has no storage.
    const { storage, ...given } = readOptions(checkObject(expected, "expected"));
    const saved = await readCache(path);
    checkOptions(path, saved.options, given);
    const cache = new KvCache(device, storage === undefined ? saved.options : { ...saved.options, storage });
    try {
      const { layers } = cache.#config;
      const notes = saved.ropeNotes.length;
      if (notes !== layers) throw unlike(path, "number of layers that have a rope", `${notes}`, `${layers}`);
      const states = saved.sequences.map((sequence) => {
        const state = cache.#sequences.restore(sequence);
        if (state === undefined)
          throw unlike(path, "sequence", JSON.stringify(sequence).slice(0, 200), "one that fits");
        return state;
      });
      fillMemory(path, cache.#memory, states, saved);
      for (const [layer, note] of saved.ropeNotes.entries()) cache.#ropeNotes[layer] = note;
    } catch (error) {
      cache.dispose();
      throw error;
    }
    return cache;
  }

  /** Gives its memory back; passes that use it go on. A second call does nothing. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#underWay.dispose();
    this.#memory.dispose();
    this.#recorded.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Encodes an append into a pass that runs once. */
  #encode(call: Omit<AppendCall, "views">, lifetime: PassLifetime, entries: readonly StepEntry[], note: string): void {
    const { layer } = call;
    const before = this.#underWay.current;
    try {
      const step = before ?? this.#begin(entries);
      if (step.isOther(entries)) {
        throw refused("k", `the step began with ${step.text} tokens, not ${new Step(entries, false).text}`);
      }
      if (step.layers.has(layer)) {
        throw invalidState(`layer ${layer} was appended to in this step; end it by advance(), or by abandon()`);
      }
      checkRopeNote(this.#ropeNotes[layer], note, layer);
      if (call.rope !== undefined) checkTurned(entries);
      this.#encodeInto(step, call, lifetime);
      step.layers.add(layer);
    } catch (error) {
      if (before === undefined) this.#underWay.end();
      throw error;
    }
    this.#ropeNotes[layer] = note;
  }

  /** Makes a pass one of the step, unless nothing could be encoded into it. */
  #encodeInto(step: Step, call: Omit<AppendCall, "views">, lifetime: PassLifetime): void {
    const { pass } = call;
    const isNew = !step.passes.has(lifetime);
    const before = isNew ? pass.info.dispatches : 0;
    lifetime.isWatched = true;
    step.passes.add(lifetime);
    using views = new Views(undefined);
    const encoded = { ...call, views };
    try {
      if (step.long === undefined) appendStep(this.#memory, encoded, step);
      else step.long.append(encoded, step);
    } catch (error) {
      if (isNew && pass.info.dispatches === before) step.passes.delete(lifetime);
      throw error;
    }
  }

  /** Encodes an append into a pass that is recorded. */
  #record(call: Omit<AppendCall, "views">, recorder: Recorder, entries: readonly StepEntry[], note: string): void {
    this.#checkIdle("recording");
    const { layer } = call;
    this.#forgetRopes();
    checkRopeNote(this.#ropeNotes[layer], note, layer);
    const recorded = this.#recorded.open(call.pass as RecordingPass, recorder, entries);
    const { step } = recorded;
    if (step.isOther(entries)) {
      throw refused("k", `the recorded step began with ${step.text} tokens, not ${new Step(entries, true).text}`);
    }
    if (step.layers.has(layer)) throw invalidState(`layer ${layer} was appended to in this recorded step`);
    using views = new Views(recorded.kept);
    recorded.append({ ...call, views });
    step.ropeNotes[layer] = note;
  }

  #begin(entries: readonly StepEntry[]): Step {
    const step = this.#underWay.begin(entries);
    this.#forgetRopes();
    return step;
  }

  /** Of keys that no sequence has any more. */
  #forgetRopes(): void {
    if (this.#sequences.live.every(({ length }) => length === 0)) this.#ropeNotes.length = 0;
  }

  #handle(state: SequenceState): KvSequence {
    let handle = this.#handles.get(state);
    if (handle === undefined) {
      for (const known of this.#handles.keys()) if (!known.isLive) this.#handles.delete(known);
      handle = KvSequence.of(this.#owner, state);
      this.#handles.set(state, handle);
    }
    return handle;
  }

  #usePass(pass: Pass): PassLifetime {
    this.#checkUsable();
    const lifetime = Pass.use(pass);
    if (pass.device !== this.device)
      throw refused("pass", "the pass belongs to another device than the cache", "invalid-handle");
    lifetime.checkCommit();
    return lifetime;
  }

  #checkLayer(layer: number): void {
    const { layers } = this.#config;
    if (checkLength(layer, "layer") >= layers) {
      throw refused("layer", `${layer} is out of range: the cache has ${layers} layers, 0 to ${layers - 1}`);
    }
  }

  #checkUsable(): void {
    if (this.disposed) throw disposedError(this.#isDisposed ? "the cache" : "the cache's device");
  }

  #checkIdle(what: string): void {
    this.#checkUsable();
    this.#underWay.endDead();
    if (this.#underWay.current !== undefined)
      throw invalidState(`${what} during a step; end it by advance(), or by abandon()`);
  }
}
