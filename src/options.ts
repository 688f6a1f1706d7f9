import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";
import { MetalAttentionError } from "./errors.ts";

// Checks where a call crosses a construction boundary. Too slow for the hot path.

// The small form of zod takes half the time to load, and leaves the language of messages open.
const { localeError: error } = en();

/** Parses `value`, or throws `invalid-argument` naming the first field at fault. */
export function parseOptions<S extends z.ZodMiniType>(schema: S, value: unknown, what: string): z.output<S> {
  const result = schema.safeParse(value, { error });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const argument = [what, ...(issue?.path ?? [])].join(".");
  throw new MetalAttentionError("invalid-argument", `${argument}: ${issue?.message ?? "not valid"}`, {
    argument,
    cause: result.error,
  });
}

/** Options of `Device.open`. */
export const deviceOptions = z.strictObject({
  library: z.optional(z.string().check(z.minLength(1))),
});

/** Options of `Device.pass`. */
export const passOptions = z.strictObject({
  mode: z._default(z.enum(["concurrent", "serial"]), "concurrent"),
});

const integer = (min: number, max: number) => z.int().check(z.gte(min), z.lte(max));
const index = integer(0, 0xffff);

/** Any number: infinities and NaN are values of a float type. */
const float = z.custom<number>((value) => typeof value === "number", "expected a number");

/** One function constant: its value must fit its type. */
const functionConstant = z.discriminatedUnion("dtype", [
  z.strictObject({ index, dtype: z.literal("bool"), value: z.boolean() }),
  z.strictObject({ index, dtype: z.literal("u8"), value: integer(0, 255) }),
  z.strictObject({ index, dtype: z.literal("i8"), value: integer(-128, 127) }),
  z.strictObject({ index, dtype: z.literal("u32"), value: integer(0, 0xffff_ffff) }),
  z.strictObject({ index, dtype: z.literal("i32"), value: integer(-0x8000_0000, 0x7fff_ffff) }),
  z.strictObject({ index, dtype: z.literal("f16"), value: float }),
  z.strictObject({ index, dtype: z.literal("f32"), value: float }),
]);

/** Options of `Device.pipeline`. */
export const pipelineOptions = z.strictObject({
  constants: z._default(z.array(functionConstant), []),
});
