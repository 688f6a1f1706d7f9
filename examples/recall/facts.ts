/** Facts to plant in a text and questions about them, of the kinds that the model beside this was trained on. */
import spec from "./facts.json" with { type: "json" };

/** A sentence that a text may hold, and what to ask about it. */
export interface Fact {
  readonly sentence: string;
  readonly question: string;
  /** What the answer has to contain; it stands in the sentence. */
  readonly value: string;
}

/** A fact in a text. */
export interface PlantedFact extends Fact {
  /** The first byte of its value. */
  readonly at: number;
}

type Words = keyof typeof spec.words;

/** Writes facts and prose: the same ones for a seed, and never two facts with one question. */
export class Writer {
  readonly #asked = new Set<string>();
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  fact(): Fact {
    for (;;) {
      const { fact, question, value } = this.#pick(spec.kinds);
      const values = new Map<string, string>();
      const filled = (text: string) =>
        text.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
          if (!values.has(name)) values.set(name, this.#fill(name));
          return values.get(name) as string;
        });
      const sentence = filled(fact);
      const asked = filled(question);
      if (this.#asked.has(asked)) continue;
      this.#asked.add(asked);
      return { sentence, question: asked, value: values.get(value) as string };
    }
  }

  /** A sentence that says nothing worth asking for. */
  prose(): string {
    const [a, n] = [() => this.#word("adjective"), () => this.#word("noun")];
    const text = this.#pick([
      () => `the ${a()} ${n()} ${this.#word("verb")} the ${n()} ${this.#word("preposition")} the ${a()} ${n()}`,
      () => `${this.#fill("name")} ${this.#word("verb")} the ${a()} ${n()}`,
      () =>
        `${this.#word("preposition")} the ${n()} of ${this.#fill("place")} the ${this.#word("role")} ${this.#word("verb")} the ${n()}`,
      () => `the ${n()} and the ${a()} ${n()} ${this.#word("preposition")} ${this.#fill("place")} were ${a()}`,
    ])();
    return `${capital(text)}.`;
  }

  /** Members of `all` in another order. */
  shuffled<T>(all: readonly T[]): T[] {
    const rest = [...all];
    return all.map(() => rest.splice(this.#below(rest.length), 1)[0] as T);
  }

  #fill(name: string): string {
    switch (name) {
      case "thing":
        return `${this.#word("adjective")} ${this.#word("noun")}`;
      case "code":
        return String(1000 + this.#below(9000));
      case "year":
        return String(1500 + this.#below(531));
      case "name":
        return capital(this.#syllables() + this.#word("nameEnd"));
      case "place":
        return capital(this.#syllables() + this.#word("placeEnd"));
      default:
        return this.#word(name as Words);
    }
  }

  #syllables(): string {
    return Array.from({ length: 1 + this.#below(2) }, () => this.#word("onset") + this.#word("vowel")).join("");
  }

  #word(kind: Words): string {
    return this.#pick(spec.words[kind]);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T;
  }

  /** A whole number from 0 to `count` - 1, by mulberry32. */
  #below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * count);
  }
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Puts facts into a text at equal distances, each after a word, and says where they stand. */
export function plant(text: Uint8Array, facts: readonly Fact[]): { text: Uint8Array; facts: PlantedFact[] } {
  const parts: Uint8Array[] = [];
  const planted: PlantedFact[] = [];
  let from = 0;
  let length = 0;
  const add = (part: Uint8Array) => {
    parts.push(part);
    length += part.length;
  };
  for (const [i, fact] of facts.entries()) {
    const to = wordEnd(text, Math.floor(((i + 0.5) * text.length) / facts.length));
    add(text.subarray(from, to));
    from = to;
    const before = Buffer.byteLength(fact.sentence.slice(0, fact.sentence.lastIndexOf(fact.value)));
    planted.push({ ...fact, at: length + 1 + before });
    add(Buffer.from(` ${fact.sentence} `));
  }
  add(text.subarray(from));
  return { text: Buffer.concat(parts), facts: planted };
}

/** The first end of a line, sentence or word at or after `at`, in this order, if one is near; else of a character. */
function wordEnd(text: Uint8Array, at: number): number {
  const near = text.subarray(at, at + 120);
  for (const end of ["\n", ". ", " "]) {
    const found = Buffer.from(near.buffer, near.byteOffset, near.length).indexOf(end);
    if (found >= 0) return at + found + end.length;
  }
  let to = at;
  while (to < text.length && ((text[to] as number) & 0xc0) === 0x80) to++;
  return to;
}

/** The bytes that ask the model a question: it goes on with the answer, up to the end of the line. */
export function asked(question: string): Uint8Array {
  return Buffer.from(`\nQuestion: ${question}\nAnswer: `);
}
