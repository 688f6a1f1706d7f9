import { refused } from "./checks.ts";

/** Every name of `T`, of all members where it is a union. */
type NameOf<T> = T extends unknown ? keyof T : never;

/** A list of all names of `T`: one that is missing, or one too many, does not compile. */
type AllNames<T> = { readonly [Name in NameOf<T> & string]: true };

/**
 * The names that an object of options or arguments may have.
 *
 * @example
 * const argNames = new OptionNames<KvCacheCopyArgs>("kvCacheCopy", { src: true, cache: true, writePos: true });
 * argNames.check({ src, cache, writePost: 3 }); // invalid-argument: did you mean writePos?
 */
export class OptionNames<T> {
  /** Who takes them, for messages. */
  readonly #taker: string;
  readonly #names: Readonly<Record<string, true>>;
  /** The keys that passed last: a call site mostly gives the same again, in the same order. */
  #passed: readonly string[] = [];

  constructor(taker: string, names: AllNames<T>) {
    this.#taker = taker;
    this.#names = Object.assign(Object.create(null), names);
  }

  /** Refuses a name that is not known, inherited ones too; `path` stands before it in the error, such as `layout.`. */
  check(options: object, path = ""): void {
    const passed = this.#passed;
    let count = 0;
    for (const key in options) {
      if (key === passed[count++]) continue;
      this.#checkAll(options, path);
      return;
    }
  }

  /** The fields that are given, inherited ones too, each read once: a getter cannot change them. Names are checked. */
  read<Options extends object>(options: Options, path = ""): Options {
    this.check(options, path);
    const given: Record<string, unknown> = {};
    for (const name in this.#names) {
      const value = (options as Readonly<Record<string, unknown>>)[name];
      if (value !== undefined) given[name] = value;
    }
    return given as Options;
  }

  #checkAll(options: object, path: string): void {
    const keys: string[] = [];
    for (const key in options) {
      if (this.#names[key] !== true) {
        throw refused(`${path}${key}`, unknownName(this.#taker, key, Object.keys(this.#names)));
      }
      keys.push(key);
    }
    this.#passed = keys;
  }
}

/** Why `taker` refuses the name `key`, with the nearest of those that it knows. */
export function unknownName(taker: string, key: string, known: readonly string[]): string {
  return `${taker} takes nothing of that name${didYouMean(key, known)}; it takes ${known.join(", ")}`;
}

/** ` (did you mean NAME?)` where one of `known` is near, else nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === undefined ? "" : ` (did you mean ${near}?)`;
}

/** Letters of a name that is looked for among others. */
const maxLength = 200;

/**
 * The name that `name` most likely stands for: the one that the fewest edits of
 * letters lead to, or one that contains it or is contained, whatever the case.
 * None where about half of the letters would have to change.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    const shorter = Math.min(wanted.length, other.length);
    const contains = shorter >= 3 && (wanted.includes(other) || other.includes(wanted));
    const most = Math.min(shorter - 1, Math.ceil(shorter * 0.4));
    // A lower bound of the edits. Very long text is not compared at all.
    const missing = Math.abs(wanted.length - other.length);
    if (wanted.length > maxLength || (missing > most && !contains)) continue;
    const edits = editDistance(wanted, other);
    if ((contains || edits <= most) && edits < fewest) {
      nearest = candidate;
      fewest = edits;
    }
  }
  return nearest;
}

/** Insertions, deletions, substitutions and swaps of neighbours from `a` to `b`. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (above[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let edits = Math.min(substituted, (above[j] as number) + 1, (row[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, (before[j - 2] as number) + 1);
      }
      row.push(edits);
    }
    before = above;
    above = row;
  }
  return above[b.length] as number;
}
