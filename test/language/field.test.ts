/** Kernels as the field writes them beyond attention, against the same thing in TypeScript. */
import { seededBits } from "../../scripts/lib/random.ts";
import { bodies, numeric, sorting } from "./field.ts";
import { bitsOf, half, numberOf } from "./formats.ts";
import { floats, type Input, kernelSuite, range, uints } from "./harness.ts";

const bits = seededBits(5);
const random = (): number => bits() / 2 ** 32;
const values = (count: number): number[] => range(count, () => Math.fround(random() * 2 - 1));
const f = Math.fround;

const keys = range(1000, () => bits());
const blocks = range(2, (block) => keys.slice(block * 128, block * 128 + 128));
const numbers = values(256);
kernelSuite("sorting", sorting, [
  {
    name: "a histogram of 4-bit digits, in threadgroup memory and then in device memory",
    kernel: "histogram",
    out: "uint",
    inputs: [uints(keys)],
    bytes: { 2: new Uint32Array([keys.length, 8]) },
    grid: 256,
    threads: 64,
    expected: range(16, (digit) => keys.filter((key) => ((key >>> 8) & 15) === digit).length),
  },
  {
    name: "a stable radix sort of blocks of 128, by prefix sums of bits",
    kernel: "sort_block",
    out: "uint",
    inputs: [uints(keys)],
    form: "threadgroups",
    grid: 2,
    threads: 128,
    expected: blocks.flatMap((block) =>
      block
        .map((key, at) => [key, at] as const)
        .sort(([a, p], [b, q]) => a - b || p - q)
        .flat(),
    ),
  },
  {
    name: "a bitonic sort through a reference to a threadgroup array",
    kernel: "bitonic_sort",
    out: "float",
    inputs: [floats(numbers)],
    grid: 256,
    threads: 256,
    expected: numbers.toSorted((a, b) => a - b),
  },
]);

// A body: position, mass, axis of spin (half), rate (half), tag, shape; 32 bytes.
interface Body {
  readonly position: readonly number[];
  readonly mass: number;
  readonly axis: readonly number[];
  readonly rate: number;
  readonly tag: number;
  readonly shape: number;
}
const list: readonly Body[] = range(9, (k) => ({
  position: values(3),
  mass: f(random() + 0.5),
  axis: range(3, (c) => (c + k) / 4),
  rate: k / 8,
  tag: bits() & 0x7f7fffff,
  shape: [0, 4, 5][k % 3] ?? 0,
}));
const bodyBytes: Input = {
  type: "uchar",
  values: list.flatMap(({ position, mass, axis, rate, tag, shape }) => [
    ...new Uint8Array(new Float32Array([...position, mass]).buffer),
    ...new Uint8Array(new Uint16Array([...axis, rate].map((x) => bitsOf(half, x))).buffer),
    ...new Uint8Array(new Uint32Array([tag, shape]).buffer),
  ]),
};
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, k) => sum + x * (b[k] ?? 0), 0);
const float32 = new Float32Array(1);
const asFloat = (word: number): number => {
  new Uint32Array(float32.buffer)[0] = word;
  return float32[0] ?? 0;
};
const corners = range(16, () => values(6)).flatMap((six) => [
  ...range(3, (k) => Math.min(six[k] ?? 0, six[k + 3] ?? 0)),
  ...range(3, (k) => Math.max(six[k] ?? 0, six[k + 3] ?? 0)),
]);
const origin = [0.125, -0.25, 0.0625];
const direction = [0.5, -0.25, 1];
/** The slab test, component by component, rounded as the kernel rounds. */
function box(at: number): number[] {
  const slab = range(3, (k) => {
    const inverse = f(1 / (direction[k] ?? 1));
    const [low = 0, high = 0, from = 0] = [corners[at * 6 + k], corners[at * 6 + 3 + k], origin[k]];
    const [t0, t1] = [f(f(low - from) * inverse), f(f(high - from) * inverse)];
    return { near: Math.min(t0, t1), far: Math.max(t0, t1), swap: t0 > t1, inside: from >= low && from <= high };
  });
  const [x, y, z] = slab as [(typeof slab)[0], (typeof slab)[0], (typeof slab)[0]];
  const enter = Math.max(x.near, y.near, z.near);
  const leave = Math.min(x.far, y.far, z.far);
  const [flatX, flatY] = [!x.swap, !y.swap];
  const [insideY, insideZ] = [y.inside || flatX, z.inside || flatY];
  void insideY;
  return [
    enter <= leave ? f((origin[0] ?? 0) + f(enter * (direction[0] ?? 0))) : -1,
    x.inside && insideZ ? 1 : 0,
    dot(
      slab.map(({ near }) => (near > 0 ? 1 : 0)),
      [1, 2, 4],
    ),
    (x.swap && !y.swap) || insideZ || x.inside ? 1 : 0,
  ];
}
kernelSuite("bodies", bodies, [
  {
    name: "n bodies: packed positions in structs in device memory, read, written and swizzled",
    kernel: "n_body",
    out: "float",
    inputs: [bodyBytes],
    bytes: { 2: new Uint32Array([list.length]) },
    grid: list.length,
    threads: 4,
    // Eight terms below 1.5, each with a few roundings.
    absolute: 4e-6,
    expected: list.flatMap(({ position }, self) => {
      const [px = 0, py = 0, pz = 0] = range(3, (k) => {
        const pull = list.reduce((sum, other, at) => {
          if (at === self) return sum;
          const d = other.position.map((x, c) => x - (position[c] ?? 0));
          return sum + ((d[k] ?? 0) * other.mass) / (dot(d, d) + 1);
        }, 0);
        return (position[k] ?? 0) + pull * 0.125;
      });
      return [py, px, 2 * pz];
    }),
  },
  {
    name: "structs in structs, unions, enum class, constants of structs and namespaces",
    kernel: "describe",
    out: "float",
    inputs: [bodyBytes],
    grid: list.length,
    threads: list.length,
    absolute: 1e-6,
    relative: 1e-6,
    expected: list.flatMap(({ position, axis, rate, tag, shape }, i) => {
      const floor = [0, -1.5, 2];
      const volume = position.reduce((product, x) => product * x, 1);
      return [
        shape === 0 ? Math.hypot(...position) : shape === 4 ? volume : (floor[Math.min(i, 2)] ?? 0),
        f((tag ^ 1) >>> 0),
        rate + (axis[1] ?? 0),
        shape,
        asFloat(tag),
        dot(position, position) + (position[1] ?? 0),
      ];
    }),
  },
  {
    name: "boxes and a ray: vectors of bool, select, swizzles on both sides",
    kernel: "boxes",
    out: "float",
    inputs: [floats(corners)],
    bytes: { 2: new Float32Array([...origin, 0, ...direction, 0]) },
    grid: 16,
    threads: 16,
    expected: range(16, box).flat(),
    absolute: 1e-6,
  },
  {
    name: "complex numbers by operators, with default arguments",
    kernel: "spiral",
    out: "float",
    bytes: { 1: new Float32Array([0.75, 0.5]) },
    grid: 6,
    threads: 6,
    absolute: 2e-6,
    expected: range(6, (n) => {
      let [w, sum] = [
        [1, 0],
        [0, 0],
      ];
      for (let k = 0; k < n; k += 1) {
        const [re = 0, im = 0] = w;
        sum = [(sum[0] ?? 0) + re, (sum[1] ?? 0) + im];
        w = [re * 0.75 - im * 0.5 + 0.25, re * 0.5 + im * 0.75];
      }
      return [(sum[0] ?? 0) + (w[0] ?? 0), (sum[1] ?? 0) + (w[1] ?? 0)];
    }).flat(),
  },
]);

/** PCG of four words, in 32-bit arithmetic. */
function pcg(seed: readonly number[]): number[] {
  const v = seed.map((x) => (Math.imul(x, 1664525) + 1013904223) >>> 0);
  const mixed = (): void => {
    for (const [to, a, b] of [
      [0, 1, 3],
      [1, 2, 0],
      [2, 0, 1],
      [3, 1, 2],
    ] as const) {
      v[to] = ((v[to] ?? 0) + Math.imul(v[a] ?? 0, v[b] ?? 0)) >>> 0;
    }
  };
  mixed();
  for (const k of range(4, (at) => at)) v[k] = ((v[k] ?? 0) ^ ((v[k] ?? 0) >>> 16)) >>> 0;
  mixed();
  return v;
}
const uniform = (word: number): number => (word >>> 9) / 2 ** 23;
const seed = 2024;
const [width, height] = [19, 13];
const image = values(width * height);
const mirrored = (at: number, size: number): number => {
  const positive = Math.abs(at);
  return positive >= size ? 2 * (size - 1) - positive : positive;
};
const pixel = (px: number, py: number): number => image[mirrored(py, height) * width + mirrored(px, width)] ?? 0;
const theta = 10000;
const [tokens, quads] = [7, 4];
const rows = values(tokens * quads * 4).map((x) => numberOf(half, bitsOf(half, x)));
const logits = values(3 * 512).map((x) => f(x * 20));
const colours = range(40, () => bits());
const under = range(120, () => bits() & 255);
kernelSuite("numeric", numeric, [
  {
    name: "random numbers from a counter of four words that is incremented as a vector",
    kernel: "random_uniform",
    out: "float",
    bytes: { 1: new Uint32Array([seed]) },
    grid: [5, 3],
    threads: [5, 1],
    expected: range(15, (at) => {
      const sums = range(3, (round) => pcg([at % 5, Math.floor(at / 5), seed, 0].map((x) => x + round)).map(uniform));
      // After three rounds and one more for the last component: 4, taken before it is counted down.
      return range(4, (k) => f(f(sums.reduce((sum, each) => f(sum + (each[k] ?? 0)), 0)) + 4));
    }).flat(),
  },
  {
    name: "rotary embedding of half4 in place, by swizzles",
    kernel: "rope",
    out: "half",
    format: half,
    initial: rows.map((x) => bitsOf(half, x)),
    bytes: { 1: new Float32Array([theta]) },
    grid: [quads, tokens],
    threads: [quads, 1],
    // One rounding to half of values below 1.5, and angles below 7 in float.
    absolute: 2 ** -10,
    expected: range(tokens * quads, (at) => {
      const [token, quad] = [Math.floor(at / quads), at % quads];
      return range(2, (pair) => {
        const angle = token * theta ** (-(2 * quad + pair) / (2 * quads));
        const [re = 0, im = 0] = rows.slice(at * 4 + 2 * pair);
        return [re * Math.cos(angle) - im * Math.sin(angle), re * Math.sin(angle) + im * Math.cos(angle)];
      }).flat();
    })
      .flat()
      .map((x) => bitsOf(half, x)),
  },
  {
    name: "a five-point stencil through a tile with a halo, mirrored at the edges",
    kernel: "stencil",
    out: "float",
    inputs: [floats(image)],
    bytes: { 2: new Int32Array([width, height]) },
    form: "threadgroups",
    grid: [Math.ceil(width / 8), Math.ceil(height / 8)],
    threads: [8, 8],
    absolute: 1e-6,
    expected: range(width * height, (at) => {
      const [px, py] = [at % width, Math.floor(at / width)];
      return pixel(px - 1, py) + pixel(px + 1, py) + pixel(px, py - 1) + pixel(px, py + 1) - 4 * pixel(px, py);
    }),
  },
  {
    name: "softmax of rows through float4, in the manner of ggml",
    kernel: "soft_max_4",
    out: "float",
    inputs: [floats(logits)],
    bytes: { 2: new BigInt64Array([512n]), 3: new BigUint64Array([2048n]) },
    threadgroupMemory: { 0: 128 },
    form: "threadgroups",
    grid: 3,
    threads: 64,
    relative: 2e-6,
    absolute: 1e-9,
    expected: range(3, (at) => {
      const line = logits.slice(at * 512, at * 512 + 512);
      const top = Math.max(...line);
      const exponentials = line.map((x) => Math.exp(x - top));
      const total = exponentials.reduce((sum, x) => sum + x, 0);
      return exponentials.map((x) => x / total);
    }).flat(),
  },
  {
    name: "colours unpacked, blended over pixels of three bytes",
    kernel: "blend",
    out: "uchar",
    inputs: [uints(colours), { type: "uchar", values: under }],
    grid: 40,
    threads: 40,
    // Where the mixed value is next to a half, the roundings of float decide.
    absolute: 1,
    expected: range(40, (i) => {
      const alpha = ((colours[i] ?? 0) >>> 24) / 255;
      const mixed = range(3, (k) => {
        const below = under[3 * i + k] ?? 0;
        return Math.round(below + ((((colours[i] ?? 0) >>> (8 * k)) & 255) - below) * alpha);
      });
      return mixed.map((x, k) => (k === 1 ? Math.max(x, under[3 * i] ?? 0) : x));
    }).flat(),
  },
]);
