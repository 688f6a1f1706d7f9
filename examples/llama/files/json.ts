import type * as z from "zod";
import { ModelError, type ModelErrorCode } from "../errors.ts";

/** A JSON file as `schema` has it. */
export async function readJson<S extends z.ZodType>(
  path: string,
  schema: S,
  code: ModelErrorCode,
): Promise<z.output<S>> {
  let value: unknown;
  try {
    value = await Bun.file(path).json();
  } catch (error) {
    throw new ModelError(code, `${path}: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  return checked(schema, value, path, code);
}

/** `value` as `schema` has it; `where` stands for it in messages. */
export function checked<S extends z.ZodType>(
  schema: S,
  value: unknown,
  where: string,
  code: ModelErrorCode,
): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.slice(0, 3).map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ModelError(code, `${where}: ${issues.join("; ").slice(0, 400)}`, result.error);
}
