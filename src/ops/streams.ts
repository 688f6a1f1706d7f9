import { checkObject, refused } from "../checks.ts";

/** One stream, or K and V in one dispatch. */
export type OneOrBoth<Stream> =
  | (Stream & { readonly k?: undefined; readonly v?: undefined })
  | ({ readonly k: Stream; readonly v: Stream } & { readonly [Name in keyof Stream]?: undefined });

/**
 * Whether K and V were given. Refuses them beside a single stream, whose first
 * argument is `argument` and all of them `single`, and one without the other.
 */
export function isDual(
  k: object | undefined,
  v: object | undefined,
  hasSingle: boolean,
  argument: string,
  single: string,
): boolean {
  if (k === undefined && v === undefined) return false;
  if (hasSingle) throw refused(argument, `expected either ${single}, or k and v, got both`);
  checkObject(k as object, "k");
  checkObject(v as object, "v");
  return true;
}
