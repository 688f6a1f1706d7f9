/** A comparison, or something to know, for the reader. */
export interface Check {
  readonly right: boolean;
  readonly line: string;
}

/** How the line of a comparison ends. */
export function verdict(right: boolean): string {
  return right ? "ok" : "WRONG";
}
