#!/usr/bin/env bun
/** Draws `docs/shapes.svg`, which keys a query sees: `bun scripts/shapes-picture.ts`. A test fails where it is another. */
import { join } from "node:path";

interface Panel {
  readonly title: string;
  readonly note: string;
  /** The left edge. */
  readonly x: number;
  /** Position of the first query, and queries. */
  readonly offset: number;
  readonly queries: number;
  /** Keys in use. */
  readonly keys: number;
  /** Brackets above the keys, of some length each, from key 0 on. */
  readonly brackets: readonly { readonly length: number; readonly text: string }[];
}

const cell = 28;
const capacity = 8;
/** Top of the cells of all panels. */
const top = 142;

const panels: readonly Panel[] = [
  {
    title: "Prefill, the whole prompt",
    note: "causal: true",
    x: 64,
    offset: 0,
    queries: 6,
    keys: 6,
    brackets: [{ length: 6, text: "seqLenK = 6" }],
  },
  {
    title: "Prefill, a chunk behind 3 tokens",
    note: "causal: true",
    x: 392,
    offset: 3,
    queries: 3,
    keys: 6,
    brackets: [
      { length: 6, text: "seqLenK = 6" },
      { length: 3, text: "qOffsetInK = 3" },
    ],
  },
  {
    title: "Decode, one token",
    note: "flashAttnDecode",
    x: 720,
    offset: 6,
    queries: 1,
    keys: 7,
    brackets: [{ length: 7, text: "seqLen = 7" }],
  },
];

const text = (x: number, y: number, words: string, style = "") => `<text x="${x}" y="${y}"${style}>${words}</text>`;

function drawPanel({ title, note, x, offset, queries, keys, brackets }: Panel): string[] {
  const parts = [text(x, 34, title, ' class="title"'), text(x, 54, note, ' class="code"')];
  for (const [index, { length, text: words }] of brackets.entries()) {
    const y = top - 18 - 26 * (brackets.length - 1 - index);
    const end = x + length * cell;
    parts.push(`<path d="M${x} ${y + 5}V${y}H${end}V${y + 5}" class="line"/>`, text(x, y - 5, words, ' class="code"'));
  }
  for (let query = 0; query < queries; query++) {
    const y = top + query * cell;
    for (let key = 0; key < capacity; key++) {
      const kind = key >= keys ? "unread" : key <= query + offset ? "seen" : "hidden";
      const [left, up, size] = [x + key * cell + 1, y + 1, cell - 2];
      parts.push(`<rect x="${left}" y="${up}" width="${size}" height="${size}" rx="3" class="${kind}"/>`);
    }
    parts.push(text(x - 8, y + 19, `q${query}`, ' class="code right"'));
  }
  const below = top + queries * cell + 16;
  for (let key = 0; key < capacity; key++) {
    parts.push(text(x + (key + 0.5) * cell, below, `${key}`, ' class="code middle"'));
  }
  parts.push(text(x, below + 20, `position of the key, of ${capacity} slots (capacity)`));
  return parts;
}

function legend(y: number): string[] {
  const entries = [
    ["seen", "the query sees the key"],
    ["hidden", "a key after the query: not seen"],
    ["unread", "a slot not in use: never read"],
  ] as const;
  const lefts = [64, 290, 548];
  return entries.flatMap(([kind, words], i) => {
    const x = lefts[i] as number;
    return [`<rect x="${x}" y="${y - 13}" width="16" height="16" rx="3" class="${kind}"/>`, text(x + 24, y, words)];
  });
}

/** The picture as SVG. */
export function shapesPicture(): string {
  const style = [
    "text { font: 13px system-ui, sans-serif; fill: #24292f; }",
    ".title { font-weight: 600; font-size: 15px; }",
    ".code { font-family: ui-monospace, monospace; font-size: 12px; }",
    ".right { text-anchor: end; } .middle { text-anchor: middle; }",
    ".line { fill: none; stroke: #57606a; }",
    ".seen { fill: #2f6fde; } .hidden { fill: #d5dae1; }",
    ".unread { fill: #ffffff; stroke: #b3bac4; stroke-dasharray: 3 3; }",
  ].join("\n");
  const lines = [
    '<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="400" viewBox="0 0 1000 400" role="img">',
    "<title>Which keys a query sees: a whole prompt, a chunk of it, and a decode step</title>",
    `<style>\n${style}\n</style>`,
    '<rect width="1000" height="400" fill="#ffffff"/>',
    ...panels.flatMap(drawPanel),
    ...legend(380),
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}

if (import.meta.main) await Bun.write(join(import.meta.dir, "../docs/shapes.svg"), shapesPicture());
