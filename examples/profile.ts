/** Where time goes: a profiled pass, as a table and as a trace for https://ui.perfetto.dev. `bun profile.ts [FILE]` */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, flashAttnPrefill, kvCacheCopySeq } from "metal-attention";

const [tokens, heads, headDim] = [256, 4, 64];
const path = process.argv[2] ?? join(tmpdir(), `attention-${process.pid}.trace.json`);
using device = Device.open();
const tensor = () => device.tensor("bf16", [1, heads, tokens, headDim]);
const [q, k, v, out] = [tensor(), tensor(), tensor(), tensor()];
using src = device.tensor("bf16", [tokens, heads, headDim]);
using cache = device.tensor("bf16", [heads, tokens, headDim]);

using pass = device.pass({ profile: true });
kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 });
flashAttnPrefill(pass, { q, k, v, out, causal: true });
await pass.commit();
await pass.trace(path);

console.table(pass.describe().map(({ kernel, executor }) => ({ kernel, executor })));
interface Event {
  readonly ph: string;
  readonly name: string;
  readonly dur?: number;
}
const { traceEvents } = (await Bun.file(path).json()) as { readonly traceEvents: readonly Event[] };
const spans = traceEvents.filter(({ ph, dur }) => ph === "X" && dur !== undefined && dur > 0);
for (const { name, dur } of spans) console.log(`${name}: ${dur} us`);
console.log(`written to ${path}`);
const missing = pass.describe().filter(({ kernel }) => !spans.some(({ name }) => name === kernel));
if (missing.length > 0) throw new Error("the trace lacks a dispatch");
if (process.argv[2] === undefined) await Bun.file(path).delete();
