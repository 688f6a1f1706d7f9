/** A byte of a word whose lowest bit also decides on a choice: clang's registers of masks must not keep the rest. */
import { languageSuite } from "./harness.ts";

const numbers = [0xc26d856b, 0x05800c34, 0x29b057a5, 0x193af853, 0xbd9bf1fa, 0x2d61eeca, 0xfb81886c, 0x5b117b09];
const values = [1.5, -2, 0.75, 2, 3, -3, 1.25, 8];

const forms: Readonly<Record<string, readonly [code: string, of: (word: number) => number]>> = {
  uchar: ["const uchar e = uchar(a[i]);", (word) => word & 0xff],
  char: ["const char e = char(a[i]);", (word) => (word << 24) >> 24],
  ushort: ["const ushort e = ushort(a[i]);", (word) => word & 0xffff],
  short: ["const short e = short(a[i]);", (word) => (word << 16) >> 16],
};

languageSuite(
  "narrowed",
  "",
  Object.entries(forms).map(([name, [code, of]]) => ({
    name,
    code: `${code}
      const float q = b[i];
      const half r = half(b[i]);
      const uint chosen = float(bfloat(float(r))) < ((uint(e) & 1u) == 0 ? q : 1.5f) ? a[7 - i] : 7u;
      out[i] = uint(e);
      if (simd_sum(chosen) == 1u) out[i] = 0;`,
    out: "uint",
    inputs: [
      { type: "uint", values: numbers },
      { type: "float", values },
    ],
    expected: numbers.map((word) => of(word) >>> 0),
  })),
);
