import { type Model, mostDecodeTokens, notNumbers, partsOf, type StepPart } from "../model/model.ts";
import { Job, type JobOptions } from "./job.ts";
import { SharedSequences } from "./sequences.ts";

/** A request's part of a step. */
interface JobPart extends StepPart {
  readonly job: Job;
  readonly isPrompt: boolean;
  readonly logits: "last" | "none";
}

/**
 * Requests that run together over one model: each step takes the next token of all that answer, and parts of the prompts
 * of those that do not yet. The tokens of each are those that `generate` gives it by itself.
 */
export class Batch {
  readonly #model: Model;
  readonly #slots: number;
  readonly #mostWaiting: number;
  readonly #sequences: SharedSequences;
  #running: Job[] = [];
  #waiting: Job[] = [];
  #work: Promise<void> | undefined;
  #isClosed = false;

  /**
   * @param slots Requests that run at once.
   * @param mostWaiting Requests that wait for that.
   */
  constructor(model: Model, slots: number, mostWaiting: number) {
    this.#model = model;
    this.#slots = slots;
    this.#mostWaiting = mostWaiting;
    this.#sequences = new SharedSequences(model);
  }

  /** Whether it takes no more requests. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether no more requests can wait. */
  get isFull(): boolean {
    return this.#waiting.filter((job) => !job.isOver).length >= this.#mostWaiting;
  }

  /** Adds a request, whose tokens come as they are computed. Errors: `request` for tokens out of the vocabulary. */
  add(prompt: readonly number[], options: JobOptions): Job {
    this.#model.checkTokens(prompt);
    const job = new Job(prompt, options, [...this.#model.config.endTokens, ...(options.endTokens ?? [])]);
    this.#waiting.push(job);
    this.#work ??= this.#run();
    return job;
  }

  /** Ends all requests by an error, once the step under way is done. */
  async close(error: unknown): Promise<void> {
    this.#isClosed = true;
    this.#failAll(error);
    await this.#work;
  }

  async #run(): Promise<void> {
    try {
      for (;;) {
        // Other events come between steps, however fast these are.
        await new Promise(setImmediate);
        this.#turn();
        if (this.#running.length === 0) return;
        await this.#step();
      }
    } catch (error) {
      this.#failAll(error);
    } finally {
      this.#work = undefined;
    }
  }

  /** Takes leave of requests that are over, and begins with those that there is room for. */
  #turn(): void {
    const isOpen = (job: Job) => !job.isOver;
    const over = this.#running.filter((job) => job.isOver);
    this.#running = this.#running.filter(isOpen);
    for (const { sequence, prompt, hasFailed } of over) {
      if (sequence === undefined) continue;
      if (hasFailed) sequence.drop();
      else this.#sequences.end(sequence, prompt.length);
    }
    this.#waiting = this.#waiting.filter(isOpen);
    for (const job of this.#waiting.splice(0, this.#slots - this.#running.length)) {
      this.#running.push(job);
      const sequence = this.#sequences.open(job.prompt);
      const cached = sequence.length;
      const rest = partsOf(job.prompt.length - cached, this.#model.chunk);
      Object.assign(job, { sequence, cached, parts: rest.map(([from, to]) => [cached + from, cached + to]) });
    }
  }

  async #step(): Promise<void> {
    const parts = this.#parts();
    const sampled = parts.filter(({ logits }) => logits === "last").map(({ job }) => job);
    try {
      this.#sequences.reserve(parts);
      const { tokens } = await this.#model.step(parts, { sample: sampled.map(({ sampler }) => sampler.next()) });
      for (const { job } of parts) job.parts.shift();
      for (const [i, job] of sampled.entries()) {
        const token = tokens[i];
        if (token === undefined) job.fail(notNumbers());
        else job.take(token);
      }
    } catch (error) {
      for (const { job } of parts) job.fail(error);
    }
  }

  /** The next token of each request that answers, and as many tokens of prompts as a step takes. */
  #parts(): JobPart[] {
    let room = this.#model.chunk;
    const parts: JobPart[] = [];
    for (const job of this.#running) {
      const { sequence, last, prompt } = job;
      const [part] = job.parts;
      if (sequence === undefined) continue;
      if (part === undefined) {
        if (last !== undefined) parts.push({ job, sequence, tokens: [last], isPrompt: false, logits: "last" });
        continue;
      }
      const [from, to] = part;
      if (to - from > room) continue;
      room -= to - from;
      const logits = to === prompt.length ? "last" : "none";
      parts.push({ job, sequence, tokens: prompt.slice(from, to), isPrompt: prompt.length > mostDecodeTokens, logits });
    }
    // Rows of a kind one after another.
    return parts.sort((a, b) => Number(a.isPrompt) - Number(b.isPrompt));
  }

  #failAll(error: unknown): void {
    for (const job of [...this.#running, ...this.#waiting]) job.fail(error);
  }
}
