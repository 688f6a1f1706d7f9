import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";
import { checkObject } from "../checks.ts";
import { MetalAttentionError } from "../errors.ts";
import type { ConstantScalar } from "../ffi/constants.ts";
import { unknownName } from "../optionNames.ts";
import type { DType } from "./dtypes.ts";

// Checks where a call crosses a construction boundary. Too slow for the hot path.

// zod/mini loads in half the time; it has no locale by default.
const { localeError: error } = en();

/** Parses `value`, or throws `invalid-argument` naming the first field at fault. */
export function parseOptions<S extends z.ZodMiniType>(schema: S, value: unknown, what: string): z.output<S> {
  if (typeof value === "object" && value !== null) checkObject(value, what);
  const result = schema.safeParse(value, { error });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const argument = [what, ...(issue?.path ?? []), ...unknown].join(".");
  throw new MetalAttentionError("invalid-argument", `${argument}: ${issue?.message ?? "not valid"}`, {
    argument,
    cause: result.error,
  });
}

/** An object of these fields and no other; `taker` is who takes it, for messages. */
function fields<const S extends z.core.$ZodLooseShape>(taker: string, shape: S) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys" ? unknownName(taker, issue.keys[0] ?? "", Object.keys(shape)) : undefined,
  });
}

/** A path, or the URL of a file. */
const file = z.custom<string | URL>(
  (value) => (typeof value === "string" && value !== "") || (value instanceof URL && value.protocol === "file:"),
  "expected a path or a file: URL",
);

/** Options of `Device.open`. */
export const deviceOptions = fields("Device.open", {
  library: z.optional(file),
  kernels: z.optional(file),
  device: z.optional(
    z.custom<"cpu" | "nvidia" | number>(
      (value) => value === "cpu" || value === "nvidia" || (Number.isInteger(value) && (value as number) >= 0),
      'expected "cpu", "nvidia" or an index of a device, from 0',
    ),
  ),
});

/** Options of `Device.tensor`. */
export const tensorOptions = fields("Device.tensor", { storage: z._default(z.enum(["shared", "private"]), "shared") });

const mode = z._default(z.enum(["concurrent", "serial"]), "concurrent");

/** Options of `Device.pass`. */
export const passOptions = fields("Device.pass", { mode, profile: z._default(z.boolean(), false) });

/** Options of `Device.record`. */
export const recordOptions = fields("Device.record", { mode });

const index = z.int().check(z.gte(0), z.lte(0xffff));

/** One type of function constant: a value for which `fits` holds, or a vector of 2 to 4 of them. */
function constantOf<const D extends DType, V extends ConstantScalar>(
  dtype: D,
  expected: string,
  fits: (value: unknown) => value is V,
) {
  const isValue = (value: unknown) =>
    // A copy, in which missing elements are undefined.
    Array.isArray(value) ? value.length >= 2 && value.length <= 4 && [...value].every(fits) : fits(value);
  return fields("a function constant", {
    index: z.optional(index),
    name: z.optional(z.string().check(z.regex(/^[A-Za-z_]\w*$/, "expected the constant's name in the source"))),
    dtype: z.literal(dtype),
    value: z.custom<V | readonly V[]>(isValue, `expected ${expected}, or 2 to 4 of them for a vector`),
  });
}

function integerConstant<const D extends DType>(dtype: D, min: number, max: number) {
  const fits = (value: unknown): value is number =>
    typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
  return constantOf(dtype, `an integer from ${min} to ${max}`, fits);
}

function longConstant<const D extends DType>(dtype: D, min: bigint, max: bigint) {
  const fits = (value: unknown): value is number | bigint =>
    (typeof value === "bigint" || Number.isSafeInteger(value)) &&
    (value as number | bigint) >= min &&
    (value as number | bigint) <= max;
  return constantOf(dtype, `an integer from ${min} to ${max}, as a bigint beyond 2^53`, fits);
}

/** Infinities and NaN are values of a float type. */
function floatConstant<const D extends DType>(dtype: D) {
  return constantOf(dtype, "a number", (value): value is number => typeof value === "number");
}

const functionConstant = z.discriminatedUnion("dtype", [
  constantOf("bool", "true or false", (value): value is boolean => typeof value === "boolean"),
  integerConstant("u8", 0, 0xff),
  integerConstant("i8", -0x80, 0x7f),
  integerConstant("u16", 0, 0xffff),
  integerConstant("i16", -0x8000, 0x7fff),
  integerConstant("u32", 0, 0xffff_ffff),
  integerConstant("i32", -0x8000_0000, 0x7fff_ffff),
  longConstant("u64", 0n, 2n ** 64n - 1n),
  longConstant("i64", -(2n ** 63n), 2n ** 63n - 1n),
  floatConstant("f16"),
  floatConstant("bf16"),
  floatConstant("f32"),
]);

/** Options of `Device.pipeline`. */
export const pipelineOptions = fields("Device.pipeline", {
  constants: z._default(z.array(functionConstant), []),
  builtIn: z._default(z.boolean(), false),
});

const macroValue = z.custom<string | number | boolean | bigint>(
  (value) =>
    typeof value === "string"
      ? !/[\0\r\n]|\\[ \t\v\f]*$/.test(value)
      : typeof value === "boolean" || typeof value === "bigint" || Number.isFinite(value),
  "expected a string of one line, a finite number, a boolean or a bigint",
);

/** Options of `Device.registerSource`. */
export const sourceOptions = fields("Device.registerSource", {
  replace: z._default(z.boolean(), false),
  macros: z._default(z.record(z.string(), macroValue), {}),
  mathMode: z._default(z.enum(["safe", "relaxed", "fast"]), "safe"),
  languageVersion: z._default(z.enum(["2.4", "3.0", "3.1"]), "3.1"),
  optimizationLevel: z._default(z.enum(["default", "size"]), "default"),
});
