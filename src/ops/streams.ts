import { checkObject, refused } from "../checks.ts";

/** One stream, or K and V in one dispatch. */
export type OneOrBoth<Stream> =
  | (Stream & { readonly k?: undefined; readonly v?: undefined })
  | ({ readonly k: Stream; readonly v: Stream } & { readonly [Name in keyof Stream]?: undefined });

/**
 * Whether both streams of a call were given, by the names `first` and `second`. Refuses them beside a single stream,
 * whose first argument is `argument` and all of them `single`, and one without the other.
 */
export function isDual(
  firstStream: object | undefined,
  secondStream: object | undefined,
  hasSingle: boolean,
  argument: string,
  single: string,
  [first, second]: readonly [string, string] = ["k", "v"],
): boolean {
  if (firstStream === undefined && secondStream === undefined) return false;
  if (hasSingle) throw refused(argument, `expected either ${single}, or ${first} and ${second}, got both`);
  checkObject(firstStream as object, first);
  checkObject(secondStream as object, second);
  return true;
}
