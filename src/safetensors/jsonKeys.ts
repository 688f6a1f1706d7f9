/**
 * The first key that an object of `json` has twice, which JSON.parse lets pass
 * in silence (the last one wins). `json` must be valid.
 */
export function repeatedKey(json: string): string | undefined {
  // Each open brace or bracket; the keys so far for a brace.
  const open: (Set<string> | undefined)[] = [];
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]]/g;
  for (const { 0: text, index } of json.matchAll(token)) {
    if (text === "{") open.push(new Set());
    else if (text === "[") open.push(undefined);
    else if (text === "}" || text === "]") open.pop();
    else {
      const keys = open.at(-1);
      if (keys === undefined || !isKey(json, index + text.length)) continue;
      const key = JSON.parse(text) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}

/** Whether a colon follows, after white space. */
function isKey(json: string, end: number): boolean {
  let at = end;
  while (" \t\r\n".includes(json.charAt(at)) && at < json.length) at++;
  return json.charAt(at) === ":";
}
