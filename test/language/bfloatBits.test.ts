/** The sign bit of a bfloat in a register, in every form that asks for it alone. */
import { bfloat, codes } from "./formats.ts";
import { languageSuite, words } from "./harness.ts";

const values = [1.5, -2, 0, -0.5, 3, -3, -1, 8];
const more = [0.5, 1, -1, 0.25, -4, 2, 1, -9];
const sums = values.map((x, k) => x + (more[k] ?? 0));
const inputs = [words("bfloat", codes(bfloat, values)), words("bfloat", codes(bfloat, more))];
const negative = sums.map((x) => (x < 0 ? 1 : 0));

const forms: Readonly<Record<string, string>> = {
  "a shift of as_type": "out[i] = as_type<ushort>(x) >> 15;",
  "a mask of as_type": "out[i] = (as_type<ushort>(x) & 0x8000) != 0;",
  "a mask kept at its place": "out[i] = (as_type<ushort>(x) & 0x8000) >> 15;",
  "a comparison of as_type<short> with zero": "out[i] = as_type<short>(x) < 0;",
  "an arithmetic shift": "out[i] = -(as_type<short>(x) >> 15);",
  "a shift as uint": "out[i] = uint(as_type<ushort>(x)) << 16 >> 31;",
  "a comparison with the highest bit": "out[i] = as_type<ushort>(x) >= 0x8000 ? 1 : 0;",
  "a union": "union { bfloat b; ushort u; } both; both.b = x; out[i] = both.u >> 15;",
  "a pointer to the variable": "bfloat y = x; out[i] = *(thread ushort *)&y >> 15;",
  "bytes of the variable": "bfloat y = x; out[i] = ((thread uchar *)&y)[1] >> 7;",
  "a vector of one's own": "const bfloat2 v(x, bfloat(1)); out[i] = (as_type<ushort2>(v) >> 15).x;",
  "a vector as a number": "out[i] = (as_type<uint>(bfloat2(x, bfloat(1))) & 0x8000) >> 15;",
  "a sign taken over":
    "const ushort s = as_type<ushort>(x) & 0x8000; out[i] = as_type<bfloat>(ushort(s | 0x3f80)) < bfloat(0);",
  signbit: "out[i] = signbit(x);",
  "a shift, for one value of all lanes":
    "bfloat t = a[0] + b[0]; for (uint n = 0; n <= i; ++n) t = a[n] + b[n]; const bfloat first = simd_broadcast_first(a[1] + b[1]); out[i] = (as_type<ushort>(t) >> 15) + 2 * (as_type<ushort>(first) >> 15);",
};

languageSuite(
  "bfloatBits",
  "",
  Object.entries(forms).map(([name, code]) => ({
    name,
    code: `bfloat x = a[i] + b[i]; if (simd_max(float(x)) > 1e9f) x = a[i]; ${code}`,
    out: "uint",
    inputs,
    expected: name.includes("all lanes") ? negative.map((x) => x + 2 * (negative[1] ?? 0)) : negative,
  })),
);
