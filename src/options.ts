import * as z from "zod";
import { MetalAttentionError } from "./errors.ts";

// Checks where a call crosses a construction boundary. Too slow for the hot path.

/** Parses `value`, or throws `invalid-argument` naming the first field at fault. */
export function parseOptions<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const result = schema.safeParse(value);
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
  library: z.string().min(1).optional(),
});

/** Options of `Device.pass`. */
export const passOptions = z.strictObject({
  mode: z.enum(["concurrent", "serial"]).default("concurrent"),
});

const u32 = z.int().min(0).max(0xffff_ffff);
const index = z.int().min(0).max(0xffff);

/** Any number: infinities and NaN are values of a float type. */
const float = z.custom<number>((value) => typeof value === "number", "expected a number");

/** One function constant: its value must fit its type. */
const functionConstant = z.discriminatedUnion("dtype", [
  z.strictObject({ index, dtype: z.literal("bool"), value: z.boolean() }),
  z.strictObject({ index, dtype: z.literal("u8"), value: z.int().min(0).max(255) }),
  z.strictObject({ index, dtype: z.literal("i8"), value: z.int().min(-128).max(127) }),
  z.strictObject({ index, dtype: z.literal("u32"), value: u32 }),
  z.strictObject({ index, dtype: z.literal("i32"), value: z.int().min(-0x8000_0000).max(0x7fff_ffff) }),
  z.strictObject({ index, dtype: z.literal("f16"), value: float }),
  z.strictObject({ index, dtype: z.literal("f32"), value: float }),
]);

/** Options of `Device.pipeline`. */
export const pipelineOptions = z.strictObject({
  constants: z.array(functionConstant).default([]),
});
