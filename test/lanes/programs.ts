/** Small kernels in LLVM's language, with what they leave: for the compiler pass alone. */
import { dlopen, ptr } from "bun:ffi";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { runChecked } from "../helpers/run.ts";

const width = 32;
/** A kernel finds the number of lanes at the beginning of its group, its input 64 bytes on, its output 1,024, and a table
 * of 256 numbers 2,048. */
const inputAt = 64 / 4;
const outputAt = 1024 / 4;
const tableAt = 2048 / 4;
const table = Int32Array.from({ length: 256 }, (_, i) => Math.imul(i + 1, 2654435761) >> 4);
/** Bytes of memory that are there or not as a whole, and that the table ends in, or lies in. */
const page = 4096;
const input = Int32Array.from({ length: width }, (_, lane) => (lane * 37) % 29);
const untouched = -9;

/** What each of `lanes` lanes writes; nothing in the places of others. */
const perLane = (lanes: number, of: (value: number, lane: number) => number): number[] =>
  Array.from({ length: width }, (_, lane) => (lane < lanes ? of(input[lane] as number, lane) : untouched));

const padded = (words: readonly number[]): number[] => [
  ...words,
  ...new Array<number>(width - words.length).fill(untouched),
];

/** The output words of each program in `ir/`, for a number of lanes. */
export const programs: Readonly<Record<string, (lanes: number) => number[]>> = {
  alone: (lanes) =>
    perLane(lanes, (value, lane) => {
      const row = (input[lane >> 3] as number) >> 3;
      if (value % 2 === 0) return untouched;
      return (input[8 * row + (lane & 7)] as number) + 100 * (input[(value * 5) & 31] as number);
    }),
  asked: (lanes) =>
    perLane(lanes, (_, lane) => {
      // All bits of a lane that is not there are set.
      const ofLane = (source: number) => (source < lanes ? (input[source] as number) >> 3 : -1);
      const row = ofLane(8 + (lane >> 4)) & 1;
      const sum = (input[row * 16 + (lane & 15)] as number) + 1000 * row;
      const other = 4 + (lane >> 4);
      const ofOdd = other % 2 === 1 ? ofLane(other) : -1;
      return lane % 2 === 1 ? sum + 100000 * (ofOdd & 7) : sum;
    }),
  branches: (lanes) => perLane(lanes, (value) => (value <= 10 ? -1 : value % 2 === 1 ? value * 3 : value)),
  byteTables: (lanes) => {
    const numbers = table.slice();
    const sums = new Int32Array(width);
    for (let round = 0; round < 2; round++) {
      for (let lane = 0; lane < lanes; lane++) {
        const value = input[lane] as number;
        for (let turn = 0; turn < (input[5] as number); turn++) {
          const word = Math.imul(value, -1640531535) + Math.imul(turn, 19088743);
          const of = (from: number, byte: number) => numbers[(from >> (8 * byte)) & 255] as number;
          const four = [0, 1, 2, 3].reduce((sum, byte) => sum + Math.imul(of(word, byte), 2 * byte + 1), 0);
          const other = word ^ 1515870810;
          const odd = value % 2 === 1 ? of(other, 1) - of(other, 3) : 0;
          sums[lane] = Math.imul(sums[lane] as number, 31) + four + odd;
        }
      }
      for (let lane = 0; lane < lanes; lane++) numbers[8 * lane] = sums[lane] as number;
    }
    return perLane(lanes, (_, lane) => sums[lane] as number);
  },
  columns: (lanes) => {
    const words = padded([]);
    for (let lane = 0; lane < lanes && lane < width; lane++) {
      const row = lane >> 3;
      words[(row ^ 3) * 8 + (lane & 7)] = input[((row * 3) & 3) * 8 + (lane & 7)] as number;
    }
    return words;
  },
  constants: (lanes) => perLane(lanes, (value) => (value > 10 ? 7 : 5)),
  copied: (lanes) => {
    const words = padded([]);
    for (let lane = 0; lane < lanes && lane < 8; lane++)
      for (let i = 0; i < 4; i++) words[4 * lane + i] = input[4 * (i < 3 ? lane : lane ^ 4) + i] as number;
    return words;
  },
  divided: (lanes) =>
    perLane(lanes, (value) => (value % 2 === 1 ? 100 * Math.floor(1000000 / value) + (-1000 % value) : untouched)),
  independent: (lanes) =>
    perLane(lanes, (value) => untouched + 1000 * ((value * 3 + 7) << 2) + ((value * 5) >> 1) - value),
  joined: (lanes) =>
    perLane(lanes, (_, lane) => {
      const row = lane >> 2;
      const at = (place: number) => input[(place & 3) * 4 + (lane & 3)] as number;
      const place = row % 2 === 1 ? (input[row] as number) & 3 : row & 3;
      const other = lane % 2 === 1 ? (input[row + 8] as number) : place ^ 1;
      return at(place) + 1000 * at(other);
    }),
  lookUps: (lanes) =>
    perLane(lanes, (value) => {
      const place = (value * 173) & 255;
      const of = (index: number) => table[index] as number;
      const sum = of(place) + of(64 + (place >> 2));
      return (value % 2 === 1 ? sum + Math.imul(of(place >> 3), 7) : sum) | 0;
    }),
  loops: (lanes) =>
    perLane(lanes, (limit) => {
      let sum = 0;
      for (let k = 0; k < limit; k++) {
        sum += k * k;
        if (sum > 100) return 0 - k;
      }
      return sum;
    }),
  moved: (lanes) => {
    const words = Int32Array.from(padded([]));
    const [to, from] = [new Int16Array(words.buffer), new Int16Array(input.buffer)];
    for (let row = 0; row < 2; row++)
      for (let lane = 0; lane < lanes && lane < width; lane++)
        to[width * row + lane] = from[width * row + lane] as number;
    return [...words];
  },
  movedTables: (lanes) =>
    perLane(lanes, (value) => {
      let sum = 0;
      for (const front of [0, 40]) {
        const of = (byte: number) => table[byte - front] ?? untouched;
        for (let turn = 0; turn < (input[5] as number); turn++) {
          const word = Math.imul(value, -1640531535) + Math.imul(turn, 19088743);
          const four = [0, 1, 2, 3].reduce((all, k) => all + Math.imul(of((word >> (8 * k)) & 255), 2 * k + 1), 0);
          sum = (Math.imul(sum, 31) + four) | 0;
        }
      }
      return sum;
    }),
  pointers: (lanes) => perLane(lanes, (_, lane) => (input[width - 1 - lane] as number) + 1000 * lane),
  prepared: (lanes) =>
    perLane(lanes, (value) => {
      const [x, y]: [number[], number[]] = [[], []];
      for (let i = 0; i < 20; i++) {
        x.push((i === 0 ? value : (y[i - 1] as number)) ^ (i + 77));
        y.push(Math.imul(x[i] as number, 2 * i + 3));
      }
      const last = y[19] as number;
      let sum = 0;
      for (let turn = 0; turn < Math.max(1, lanes & 7); turn++) {
        sum = ((Math.imul(sum, 5) ^ last) + ((last < 0 ? y[7] : x[11]) as number)) | 0;
      }
      return sum;
    }),
  rotated: (lanes) => perLane(lanes, (limit) => 3 * Math.max(limit, 1)),
  while: (lanes) => perLane(lanes, (limit) => 3 * Math.max(limit, 0)),
  masked: (lanes) => {
    const words = padded([]);
    for (let lane = 0; lane < lanes && lane < width; lane++) {
      const value = input[lane] as number;
      const half = lane % 2 === 0 ? (input[lane / 2] as number) : 0;
      if (value > 10) words[lane ^ 1] = half + (input[(value * 5) % width] as number);
    }
    return words;
  },
  oddBits: (lanes) => perLane(lanes, (value) => untouched + Math.floor(((value * (value - 1)) / 2 + 1) ** 2 / 4)),
  overlaps: (lanes) => {
    const words = Int32Array.from({ length: 2 * width }, (_, i) => input[i] ?? untouched);
    const at = (place: number) => words[place] as number;
    const bytes = new DataView(words.buffer);
    return perLane(lanes, (_, lane) => {
      const place = 8 * (at(lane >> 3) >> 3) + (lane & 7);
      const four = [3, 5, 7, 11].reduce((sum, factor, i) => sum + factor * at(lane + i), 0);
      return (four + 13 * at(place) + 17 * at(place + 1) + bytes.getInt32(6 * lane, true)) | 0;
    });
  },
  partly: (lanes) => perLane(lanes, (value) => (Math.imul(value, 100003) & 0xffff) | (Math.imul(value, 1009) << 16)),
  permute: (lanes) => {
    let sum = 0;
    for (let k = 0; k < lanes; k++) sum += k * (input[k] as number);
    // All bits of a lane that is not there are set.
    return perLane(lanes, (place) => sum + (place < lanes ? 6 * place : -1 + 0xffff));
  },
  quads: (lanes) =>
    perLane(lanes, (value) => {
      let quads = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => [0, 1, 2, 3].map((k) => Math.fround(value * (4 * i + k + 1))));
      for (const step of [1, 2, 4])
        quads = quads.map((quad, i) =>
          quad.map((low, k) => {
            const other = quads[i ^ step]?.[k] ?? 0;
            return (i & step) === 0 ? Math.fround(low + other) : Math.fround(other - low);
          }),
        );
      return quads.flat().reduce((sum, x, i) => (Math.imul(sum, 3) + x * (i + 1)) | 0, 0);
    }),
  rowLoads: (lanes) =>
    perLane(lanes, (value, lane) => {
      const bytes = new DataView(table.buffer, 48 * (lane >> 4));
      const wordAt = (place: number) => bytes.getInt32(place, true);
      const bit = (lane & 15) * (input[3] as number);
      const sum = wordAt(2 * Math.min(bit >> 4, 22)) + wordAt(6 * (bit >> 4));
      return (value % 2 === 1 ? sum + Math.imul(wordAt(2 * (bit >> 5)), 7) + wordAt(4 * (value & 7)) : sum) | 0;
    }),
  runs: (lanes) => {
    const words = padded([]);
    for (let lane = 0; lane < lanes && lane < width; lane++) {
      const row = lane >> 2;
      const quad = lane & 3;
      if (row % 3 === 1) continue;
      const at = (i: number) => input[((row * 3) & 3) * 4 + i] as number;
      const sum = [0, 1, 2, 3].reduce((total, i) => total + at(4 * quad + i) * 30 ** i, at(0) * 1000000);
      words[(row ^ 3) * 4 + quad] = lane % 2 === 0 ? sum : sum + at(quad);
    }
    return words;
  },
  shifted: (lanes) => perLane(lanes, (_, lane) => (input[lane ^ 16] as number) + 8 * (lane & 15)),
  sixes: (lanes) => {
    const words = Int32Array.from(padded([]));
    const bytes = new DataView(words.buffer);
    for (let lane = 0; lane < lanes && lane < 20; lane++) bytes.setInt32(6 * lane, input[lane] as number, true);
    return [...words];
  },
  sparse: (lanes) =>
    perLane(lanes, (value) => {
      const of = (bit: number) => table[(value * 41) & bit] as number;
      return (of(64) + Math.imul(of(128), 3)) | 0;
    }),
  strides: (lanes) =>
    perLane(lanes, (_, lane) => (input[lane & 7] as number) + 100 * (input[4 * (lane & 7) + 1] as number)),
  tables: (lanes) =>
    perLane(lanes, (value) => {
      let total = 0;
      for (let k = 0; k < Math.max(lanes, 1); k++) {
        const asked = (value + k) & 31;
        // All bits of a lane that is not there are set.
        const of = (table: number) => (asked < lanes ? table * lanes : -1);
        total = (Math.imul(total, 3) + (of(asked & 7) ^ of(asked & 15)) + of(asked)) | 0;
      }
      return total;
    }),
  uniform: (lanes) => {
    const active = Array.from({ length: lanes }, (_, lane) => lane).filter((lane) => (input[lane] as number) > 10);
    const last = active.at(-1);
    if (last === undefined) return padded([]);
    const sum = active.reduce((total, each) => total + (input[each] as number), 0);
    const ballot = active.filter((each) => each % 2 === 0).reduce((bits, each) => bits | (1 << each), 0);
    return padded([input[last] as number, sum, ballot]);
  },
  words: (lanes) =>
    perLane(lanes, (_, lane) => {
      const low = BigInt(input[lane ^ 1] as number);
      const bits = BigInt.asUintN(64, ((BigInt.asUintN(32, low * 1000003n) << 32n) | low) ^ 4886718345n);
      // All bits of a lane that is not there are set.
      const other = (lane ^ 1) < lanes ? bits : BigInt.asUintN(64, -1n);
      const top = BigInt.asUintN(64, other * 11400714819323198485n) >> 40n;
      return Number(BigInt.asIntN(32, ((other + (other >> 32n)) ^ ((other >> 20n) & 0xffffn)) + top));
    }),
  wrap: (lanes) => perLane(lanes - 5, (value) => value),
  leftInside: (lanes) =>
    perLane(lanes, (value) => {
      let [n, sum] = [value, 0];
      for (; n % 3 === 0 || n > 4; n--) sum += n % 3 === 0 ? 100 : n;
      return sum + n;
    }),
  // Last: a mistake of the pass may keep it from ending.
  entries: (lanes) => perLane(lanes, (value) => 11 * (Math.max(value, 0) + 1) - (value % 2 === 0 ? 0 : 10)),
};

/** Numbers of lanes that programs are run with; all there are from 32 on. */
export const laneCounts: readonly number[] = [32, 40, 19, 1];

/** A program compiled with the pass in `plugin`: its output for a number of lanes. */
export async function compileProgram(
  name: string,
  plugin: string,
  folder: string,
  processor = "native",
  source = join(import.meta.dir, "ir", `${name}.ll`),
): Promise<(lanes: number) => number[]> {
  const object = join(mkdtempSync(join(folder, "program-")), `${name}.so`);
  const options = ["-O3", `-march=${processor}`, "-shared", "-fPIC", "-nostdlib", "-w", `-fpass-plugin=${plugin}`];
  await runChecked(["clang-19", ...options, source, "-o", object]);
  const { symbols } = dlopen(object, { kernel: { args: ["ptr", "u32"], returns: "void" } });
  const run = (lanes: number, group: Int32Array): number[] => {
    group.fill(untouched);
    group[0] = lanes;
    group.set(input, inputAt);
    group.set(table, tableAt);
    symbols.kernel(ptr(group), 0);
    return Array.from(group.subarray(outputAt, outputAt + width));
  };
  return (lanes) => {
    const memory = new ArrayBuffer(4 * page);
    const start = page - (Number(ptr(memory)) % page);
    const [inPage, across] = [start, start + page - tableAt * 4 - 512].map((first) =>
      run(lanes, new Int32Array(memory, first, tableAt + table.length)),
    );
    if (inPage === undefined || !Bun.deepEquals(inPage, across))
      throw new Error(`${name} leaves other words where a page ends in its table`);
    return inPage;
  };
}

export const expectedOf = (name: string, lanes: number): number[] => programs[name]?.(Math.min(lanes, width)) ?? [];
