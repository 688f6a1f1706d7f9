/**
 * The first key that an object of `json` has twice, which JSON.parse lets pass
 * in silence (the last one wins). `json` must be valid.
 */
export function repeatedKey(json: string): string | undefined {
  // Each open brace or bracket; the keys so far for a brace.
  const open: (Set<string> | undefined)[] = [];
  const token = /["{}[\]]/g;
  for (let found = token.exec(json); found !== null; found = token.exec(json)) {
    const { 0: text, index } = found;
    if (text === "{") open.push(new Set());
    else if (text === "[") open.push(undefined);
    else if (text !== '"') open.pop();
    else {
      const end = stringEnd(json, index);
      token.lastIndex = end;
      const keys = open.at(-1);
      if (keys === undefined || !isKey(json, end)) continue;
      const key = JSON.parse(json.slice(index, end)) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}

/** Where the string that begins at `start` ends. A regular expression gives up on strings of some megabytes. */
function stringEnd(json: string, start: number): number {
  let quote = json.indexOf('"', start + 1);
  while (isEscaped(json, quote)) quote = json.indexOf('"', quote + 1);
  return quote + 1;
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json[first - 1] === "\\") first--;
  return (at - first) % 2 === 1;
}

/** Whether a colon follows, after white space. */
function isKey(json: string, end: number): boolean {
  let at = end;
  while (" \t\r\n".includes(json.charAt(at)) && at < json.length) at++;
  return json.charAt(at) === ":";
}
