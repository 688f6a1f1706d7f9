import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomModels } from "./architectures.ts";
import { folderWith } from "./models.ts";
import { type Body, eventsOf, name, type Options, TestServer, until } from "./servers.ts";

const chatPath = "/v1/chat/completions";
const [architecture = ""] = Object.keys(randomModels);
const endless = (fields: Body = {}) => folderWith(architecture, { eos_token_id: null, ...fields });
const usual = { temperature: 0.8, top_p: 0.9, seed: 3, max_tokens: 12 } satisfies Options;
const messages = [{ role: "user", content: "what is at the end of the line" }];

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start(endless(), 3);
});
afterAll(() => server[Symbol.asyncDispose]());

describe("answers", () => {
  test("a text and a conversation as the command line does", async () => {
    const prompt = "the end of the line";
    const { choices, usage } = await server.complete(prompt, usual);
    const text = await server.expected(server.tokenizer.encode(prompt), usual);
    expect(text.length).toBeGreaterThan(5);
    expect(choices).toEqual([{ index: 0, text, logprobs: null, finish_reason: "length" }] as never);
    expect(usage).toMatchObject({ prompt_tokens: 13, completion_tokens: 12, total_tokens: 25 });
    const chat = await server.answer(chatPath, { messages, ...usual, max_tokens: undefined, max_completion_tokens: 7 });
    const content = await server.expected(server.tokenizer.encodeChat(messages), { ...usual, max_tokens: 7 });
    const message = { role: "assistant", content, refusal: null };
    expect(chat.choices).toEqual([{ index: 0, message, logprobs: null, finish_reason: "length" }] as never);
    const parts = [
      {
        role: "user",
        content: [
          { type: "text", text: "what is at the end" },
          { type: "text", text: " of the line" },
        ],
      },
    ];
    const inParts = await server.answer(chatPath, { messages: parts, ...usual, max_tokens: 7 });
    expect(inParts.choices[0]?.message.content).toBe(content);
  });

  test("in events, whose pieces are the text", async () => {
    const { choices, usage } = await server.answer(chatPath, { messages, ...usual });
    const stream = { stream: true, stream_options: { include_usage: true } };
    const response = await server.post(chatPath, { messages, ...usual, ...stream });
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    const events = await eventsOf(response);
    expect(events.pop()).toBe("[DONE]");
    const [first, ...rest] = events.map((event) => JSON.parse(event));
    const last = rest.pop();
    const end = rest.pop();
    const head = { id: first.id, object: "chat.completion.chunk", model: name, created: first.created };
    const one = (delta: Body, reason: string | null) => ({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      usage: null,
    });
    expect(first).toEqual(one({ role: "assistant", content: "" }, null));
    expect(rest.length).toBeGreaterThan(3);
    expect(rest).toEqual(rest.map((part) => one({ content: part.choices[0].delta.content }, null)));
    expect(rest.map((part) => part.choices[0].delta.content).join("")).toBe(choices[0]?.message.content as string);
    expect(end).toEqual(one({}, "length"));
    // The prompt is known from the answer before.
    const cached = { prompt_tokens_details: { cached_tokens: usage.prompt_tokens - 17 } };
    expect(last).toEqual({ ...head, choices: [], usage: { ...usage, ...cached } });
    const plain = await eventsOf(await server.post("/v1/completions", { prompt: "a b", ...usual, stream: true }));
    expect(plain.pop()).toBe("[DONE]");
    const texts = plain.map((event) => JSON.parse(event));
    expect(texts.every((event) => event.usage === undefined && event.object === "text_completion")).toBeTrue();
    const expected = await server.expected(server.tokenizer.encode("a b"), usual);
    expect(texts.map((event) => event.choices[0].text).join("")).toBe(expected);
  });

  test("the same beside others, of prompts short and long, as alone", async () => {
    const words = "the old man said that a line of red sand ran down to the sea and on ".repeat(12);
    const lengths = [3, 580, 1, 40, 15, 90, 16, 310, 60, 200, 17, 5];
    const jobs = lengths.map((length, i) => ({
      tokens: server.tokenizer.encode(words.slice(i, i + length)),
      prompt: words.slice(i, i + length),
      options: { temperature: i % 3 === 0 ? 0 : 0.7 + i / 20, top_p: 0.95, seed: i, max_tokens: 4 + ((5 * i) % 13) },
    }));
    server.steps.length = 0;
    const answers = await Promise.all(jobs.map(({ prompt, options }) => server.complete(prompt, options)));
    for (const [i, { tokens, options }] of jobs.entries()) {
      expect([i, answers[i]?.choices[0]?.text]).toEqual([i, await server.expected(tokens, options)]);
    }
    // Three at once, and prompts beside answers.
    expect(server.steps.some((parts) => parts.length === 3)).toBeTrue();
    expect(Math.max(...server.steps.map((parts) => parts.length))).toBe(3);
    const isMixed = server.steps.some((parts) => parts.some((p) => p.isPrompt) && parts.some((p) => !p.isPrompt));
    expect(isMixed).toBeTrue();
    const sizes = server.steps.map((parts) => parts.reduce((sum, { tokens }) => sum + tokens.length, 0));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256 + 3);
  });

  test("by the options of the model, and at the end of the context", async () => {
    await using small = await TestServer.start(endless(), 2, { context: 40, cache: "f16" });
    const { choices, usage } = await small.complete("a b c d e f g h i j k l m n o p", { ...usual, max_tokens: 500 });
    expect([choices[0]?.finish_reason, usage.total_tokens]).toEqual(["length", 40]);
    // Of four pages of 32 tokens the prompt stays in one.
    await until(() => small.model.cache.freePages === 3);
    await using ring = await TestServer.start(endless(), 2, { window: 20, chunk: 40 });
    const prompt = "there is no end to what a line of text may say ".repeat(4);
    const tokens = ring.tokenizer.encode(prompt);
    const texts = await Promise.all([1, 2, 3].map((seed) => ring.complete(prompt, { ...usual, seed })));
    for (const [i, answer] of texts.entries()) {
      expect(answer.choices[0]?.text).toBe(await ring.expected(tokens, { ...usual, seed: i + 1 }));
      expect(answer.usage.prompt_tokens_details.cached_tokens).toBe(0);
    }
  });

  test("end where the model ends them", async () => {
    const tokens = server.tokenizer.encode("the sea");
    const said = await server.expectedTokens(tokens, usual);
    const at = said.findIndex((token, i) => i >= 4 && !said.slice(0, i).includes(token));
    await using ending = await TestServer.start(endless({ eos_token_id: [said[at]] }), 1);
    const { choices, usage } = await ending.complete("the sea", usual);
    const text = await ending.expected(tokens, usual);
    expect([choices[0]?.finish_reason, choices[0]?.text]).toEqual(["stop", text]);
    expect(usage.completion_tokens).toBe(at);
  });

  test("up to a stop string, over the borders of tokens", async () => {
    const whole = (await server.complete("a line", { ...usual, max_tokens: 40 })).choices[0]?.text as string;
    for (const [from, to] of [
      [0, 3],
      [9, 12],
      [15, 16],
      [17, 25],
    ] as const) {
      const stop = whole.slice(from, to);
      const at = whole.indexOf(stop);
      const { choices } = await server.complete("a line", { ...usual, max_tokens: 40, stop: ["never said", stop] });
      expect([choices[0]?.text, choices[0]?.finish_reason]).toEqual([whole.slice(0, at), "stop"]);
      const response = await server.post("/v1/completions", {
        prompt: "a line",
        ...usual,
        max_tokens: 40,
        stop,
        stream: true,
      });
      const texts = (await eventsOf(response)).slice(0, -1).map((event) => JSON.parse(event).choices[0].text);
      expect(texts.join("")).toBe(whole.slice(0, at));
    }
    // What could have been the beginning of one is said at the end.
    const { choices } = await server.complete("a line", { ...usual, max_tokens: 40, stop: `${whole.slice(-2)}!` });
    expect(choices[0]?.text).toBe(whole);
  });
});

describe("beginnings that others have", () => {
  const cachedOf = async (prompt: string, to: TestServer, options: Body = usual) => {
    const { usage, choices } = await to.complete(prompt, options);
    const expected = await to.expected(to.tokenizer.encode(prompt), usual);
    if (options === usual) expect(choices[0]?.text).toBe(expected);
    return usage.prompt_tokens_details.cached_tokens;
  };

  test("are computed once, as far as the bits are the same", async () => {
    await using fresh = await TestServer.start(endless(), 2);
    const words = "xyzw vxqz ";
    const system = words.repeat(10);
    const count = fresh.tokenizer.encode(system).length;
    expect(await cachedOf(system, fresh)).toBe(0);
    expect(await cachedOf(system, fresh)).toBe(count - 17);
    expect(await cachedOf(`${system}1234567890 1234567890`, fresh)).toBe(count);
    expect(await cachedOf(`${system}123456`, fresh)).toBe(count + 6 - 17);
    expect(await cachedOf(`2${system}`, fresh)).toBe(0);
    // A short prompt is computed as an answer is.
    expect(await cachedOf("xyzw vxqz", fresh)).toBe(0);
    expect(await cachedOf("xyzw vxqz", fresh)).toBe(8);
    // So an answer's tokens are of no use to a longer one.
    const said = (await fresh.complete("1", { ...usual, temperature: 0, max_tokens: 40 })).choices[0]?.text as string;
    expect(await cachedOf(`1${said}`, fresh)).toBe(0);
    // One that runs lends its beginning too.
    const running = await fresh.post("/v1/completions", { prompt: `3${system}`, max_tokens: 400, stream: true });
    const reader = running.body?.getReader();
    await reader?.read();
    expect(await cachedOf(`3${system}`, fresh)).toBe(count + 1 - 17);
    await reader?.cancel();
  });

  test("go when their room is needed, the longest unused first", async () => {
    await using small = await TestServer.start(endless(), 1, { context: 128 });
    const prompts = ["q", "w", "x", "z"].map((letter) => `${letter} `.repeat(32));
    const counts: number[] = [];
    // The pool has four pages of 32 tokens; a prompt takes two, and its answer goes into a third.
    for (const i of [0, 0, 1, 1, 0, 2, 1, 3, 3, 2]) counts.push(await cachedOf(prompts[i] as string, small));
    expect(counts[1]).toBe(47);
    expect(counts[3]).toBe(47);
    expect(counts[8]).toBe(47);
    expect(counts.filter((count) => count === 0).length).toBeGreaterThan(3);
    // A prompt that takes the whole pool finds it.
    expect(await cachedOf("1 ".repeat(60).slice(0, 116), small)).toBe(0);
    expect(await cachedOf("1 ".repeat(60).slice(0, 116), small)).toBe(116 - 17);
  });
});
