/** A server: one cache, a sequence a request, a token for all in a step. `bun server.ts PORT`, or it asks itself. */
import { Device, KvCache, type KvSequence } from "metal-attention";

const headDim = 64; // the "model" is that of decode-loop.ts
const alphabet = [..."metal-bun."];
const code = (letter: string) =>
  Array.from({ length: headDim }, (_, i) => Math.sign(Math.sin(letter.charCodeAt(0) * (i + 1) * 78.233)));
const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, x, i) => sum + x * Number(b[i]), 0);

interface Request {
  sequence?: KvSequence;
  text: string;
  /** Letters that are not in the cache yet: the prompt, then the newest one. */
  next: string;
  /** Letters to come; 0 once it is done, or nobody listens. */
  left: number;
  stream?: ReadableStreamDefaultController;
}

using device = Device.open();
using cache = new KvCache(device, { layers: 1, nKvHeads: 1, headDim, capacity: 256, sequences: 8 });
let requests: Request[] = [];

/** One token for every request, in one pass. */
async function step(batch: readonly Request[]): Promise<void> {
  const rows = (of: string) => device.tensor("f16", [of.length, 1, headDim]).set([...of].flatMap(code));
  using k = rows(batch.map(({ text, next }) => `${text.at(-1) ?? " "}${next}`.slice(0, -1)).join(""));
  using v = rows(batch.map(({ next }) => next).join(""));
  using out = device.tensor("f16", v.shape);
  const sequences = batch.map((request) => (request.sequence ??= cache.sequence()));
  const counts = batch.map(({ next }) => next.length);
  using pass = device.pass();
  cache.append(pass, 0, { k, v, sequences, counts });
  cache.attend(pass, 0, { q: v, out, scale: 1 });
  await pass.commit();
  cache.advance();
  const results = out.toFloat32Array();
  let end = 0;
  for (const [i, request] of batch.entries()) {
    end += Number(counts[i]) * headDim;
    const last = results.subarray(end - headDim, end);
    request.text += request.next;
    request.next = alphabet.toSorted((a, b) => dot(code(b), last) - dot(code(a), last))[0] as string;
    if (request.left > 0) request.stream?.enqueue(request.next);
    if (--request.left === 0) request.stream?.close();
  }
}

let isRunning = false;
async function run(): Promise<void> {
  for (isRunning = true; requests.length > 0; await Bun.sleep(0)) {
    await step(requests.slice(0, 8));
    for (const { sequence } of requests.filter(({ left }) => left <= 0)) sequence?.drop();
    requests = requests.filter(({ left }) => left > 0);
  }
  isRunning = false;
}

await using server = Bun.serve({
  port: Number(process.argv[2] ?? 0),
  async fetch(http) {
    const next = await http.text();
    if (!/^[a-z.-]{1,128}$/.test(next)) return new Response("1 to 128 small letters, - and .\n", { status: 400 });
    const request: Request = { text: "", next, left: 17 };
    const start = (stream: ReadableStreamDefaultController) => {
      requests.push(Object.assign(request, { stream }));
      if (!isRunning) void run();
    };
    return new Response(new ReadableStream({ start, cancel: () => void Object.assign(request, { left: 0 }) }));
  },
});
console.log(`listening: curl -N ${server.url} -d metal-bun.met`);
if (process.argv[2] !== undefined) await new Promise(() => {});

const prompts = ["metal-bun.met", "lab.lab.l"];
const ask = async (body: string) => (await fetch(server.url, { method: "POST", body })).text();
const answers = await Promise.all(prompts.map(ask));
for (const [i, prompt] of prompts.entries()) console.log(`${prompt}|${answers[i]}`);
if (`${answers}` !== "al-bun.metal-bun.,ab.lab.lab.lab.la") throw new Error(`other answers: ${answers}`);
