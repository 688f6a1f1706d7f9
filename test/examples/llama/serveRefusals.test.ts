import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import * as fc from "fast-check";
import { randomModels } from "./architectures.ts";
import { folderWith } from "./models.ts";
import { type Body, type ErrorBody, eventsOf, name, TestServer, until } from "./servers.ts";

const chatPath = "/v1/chat/completions";
const textPath = "/v1/completions";
const [architecture = ""] = Object.keys(randomModels);
const endless = () => folderWith(architecture, { eos_token_id: null });
const messages = [{ role: "user", content: "hello" }];
const long = { prompt: "a b", max_tokens: 450, temperature: 0 };

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start(endless(), 1, { context: 500 });
});
afterAll(() => server[Symbol.asyncDispose]());

async function refusal(response: Response): Promise<ErrorBody["error"] & { status: number }> {
  expect(response.headers.get("Content-Type")).toStartWith("application/json");
  const { error, ...rest } = (await response.json()) as ErrorBody;
  expect([Object.keys(rest), Object.keys(error)]).toEqual([[], ["message", "type", "param", "code"]]);
  return { ...error, status: response.status };
}

const isAnswering = async () => {
  const { choices } = await server.complete("a b", { max_tokens: 3, temperature: 0 });
  return (choices[0]?.text.length ?? 0) > 0;
};

describe("refusals", () => {
  const unlike: [what: string, body: Body, param: string | null, part: string][] = [
    ["another model", { model: "other", messages }, "model", '"other"'],
    ["no model", { model: undefined, messages }, "model", "model"],
    ["no messages", {}, "messages", "messages"],
    ["no message", { messages: [] }, "messages", "messages"],
    ["an unknown role", { messages: [{ role: "boss", content: "hello" }] }, "messages.0.role", "role"],
    [
      "a picture",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }] },
      "messages.0.content",
      "",
    ],
    ["two answers", { messages, n: 2 }, "n", "1"],
    ["tools", { messages, tools: [{}] }, "tools", ""],
    ["a penalty", { messages, frequency_penalty: 0.5 }, "frequency_penalty", "0"],
    ["a bias", { messages, logit_bias: { 5: 1 } }, "logit_bias.5", ""],
    ["another format", { messages, response_format: { type: "json_object" } }, "response_format.type", "text"],
    ["log-probabilities", { messages, logprobs: true }, "logprobs", ""],
    ["an unknown field", { messages, top_k: 5 }, "top_k", "top_k"],
    ["too hot", { messages, temperature: 2.5 }, "temperature", "2"],
    ["top_p above 1", { messages, top_p: 1.5 }, "top_p", "1"],
    ["no tokens", { messages, max_tokens: 0 }, "max_tokens", ""],
    ["two limits", { messages, max_tokens: 3, max_completion_tokens: 4 }, "max_tokens", "4"],
    ["five stops", { messages, stop: ["a", "b", "c", "d", "e"] }, "stop", ""],
    ["an empty stop", { messages, stop: "" }, "stop", ""],
    ["half a seed", { messages, seed: 1.5 }, "seed", ""],
    ["a word for a boolean", { messages, stream: "yes" }, "stream", ""],
    ["too long a conversation", { messages: [{ role: "user", content: "x ".repeat(400) }] }, "messages", "at most 500"],
  ];
  test.each(unlike)("%s", async (_, body, param, part) => {
    const { status, type, ...error } = await refusal(await server.post(chatPath, body));
    expect([status, type, error.param]).toEqual([
      param === "model" && "model" in body && body["model"] ? 404 : 400,
      "invalid_request_error",
      param,
    ]);
    expect(error.message).toContain(part);
  });

  test("of text completions", async () => {
    const bodies: [body: Body, param: string][] = [
      [{}, "prompt"],
      [{ prompt: ["a", "b"] }, "prompt"],
      [{ prompt: "" }, "prompt"],
      [{ prompt: "a", echo: true }, "echo"],
      [{ prompt: "a", suffix: "b" }, "suffix"],
      [{ prompt: "a", messages }, "messages"],
      [{ prompt: "x ".repeat(300) }, "prompt"],
    ];
    for (const [body, expected] of bodies) {
      const { status, param } = await refusal(await server.post(textPath, body));
      expect([status, param]).toEqual([400, expected]);
    }
    const { code } = await refusal(await server.post(textPath, { prompt: "x ".repeat(300) }));
    expect(code).toBe("context_length_exceeded");
  });

  test("of paths, methods, and bodies that are no JSON", async () => {
    const get = async (path: string, method = "GET") => refusal(await fetch(new URL(path, server.url), { method }));
    expect(await get("/v1/nothing")).toMatchObject({ status: 404, code: "unknown_url" });
    expect(await get(chatPath)).toMatchObject({ status: 405, code: "method_not_allowed" });
    expect(await get("/v1/models", "DELETE")).toMatchObject({ status: 405 });
    expect(await get("/v1/models/other%zz")).toMatchObject({ status: 404, code: "model_not_found" });
    const known = await fetch(new URL(`/v1/models/${name}`, server.url));
    expect(await known.json()).toMatchObject({ id: name, object: "model" });
    const list = await fetch(new URL("/v1/models", server.url));
    expect(await list.json()).toMatchObject({ object: "list", data: [{ id: name }] });
    for (const body of ["", "{", "[".repeat(200_000), "null", "[]", '"text"', "\u0000"]) {
      expect(await refusal(await server.post(chatPath, body))).toMatchObject({ status: 400 });
    }
    const notText = fetch(new URL(chatPath, server.url), { method: "POST", body: Uint8Array.of(0x22, 0xff, 0x22) });
    expect(await refusal(await notText)).toMatchObject({ status: 400, code: "invalid_json" });
  });

  test("of bodies that are too large, told their length or not", async () => {
    const large = JSON.stringify({ model: name, prompt: "x".repeat(2 ** 20) });
    expect(await refusal(await server.post(textPath, large))).toMatchObject({ status: 413 });
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let i = 0; i < large.length; i += 2 ** 16) {
          controller.enqueue(new TextEncoder().encode(large.slice(i, i + 2 ** 16)));
        }
        controller.close();
      },
    });
    const response = await fetch(new URL(textPath, server.url), { method: "POST", body: stream });
    expect(await refusal(response)).toMatchObject({ status: 413, code: "request_too_large" });
  });

  test("odd bodies get an answer or a refusal, and the server goes on", async () => {
    const odd = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(null, -1, 1e300, 2 ** 53, "\ud800", "</s>", [], {}),
    );
    const field = fc.constantFrom(
      "model",
      "messages",
      "prompt",
      "temperature",
      "top_p",
      "seed",
      "stop",
      "n",
      "stream",
      "stream_options",
      "max_tokens",
      "logit_bias",
      "user",
      "metadata",
      "__proto__",
      "tools",
    );
    const content = fc.oneof(fc.string({ unit: "binary", maxLength: 40 }), odd);
    const fields = fc.array(fc.tuple(field, odd), { maxLength: 2 });
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(content, fields, fc.boolean(), async (said, changed, isChat) => {
        const base = isChat ? { messages: [{ role: "user", content: said }] } : { prompt: said };
        // As text, so that "__proto__" is a field too.
        const all = [...Object.entries({ model: name, max_tokens: 2, ...base }), ...changed];
        const body = `{${all.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`;
        const response = await server.post(isChat ? chatPath : textPath, body);
        statuses.add(response.status);
        expect([200, 400, 404]).toContain(response.status);
        if (response.status !== 200) await refusal(response);
        else await response.text();
      }),
      { numRuns: 300, seed: 7 },
    );
    expect([...statuses].sort()).toEqual([200, 400, 404]);
    expect(await isAnswering()).toBeTrue();
  });
});

describe("a client that leaves", () => {
  /** Whether no request runs any more. */
  const isStill = async () => {
    await Bun.sleep(20);
    const before = server.steps.length;
    await Bun.sleep(40);
    return server.steps.length === before;
  };

  test("ends its request, whole or in events, that runs or waits", async () => {
    for (const stream of [true, false]) {
      const stop = new AbortController();
      const before = server.steps.length;
      const running = server.post(textPath, { ...long, stream }, { signal: stop.signal });
      await until(() => server.steps.length > before + 3);
      const waiting = server.post(textPath, { ...long, prompt: "c d", stream }, { signal: stop.signal });
      await Bun.sleep(10);
      stop.abort();
      await Promise.allSettled([running.then((response) => response.text()), waiting]);
      expect(await isStill()).toBeTrue();
      expect(server.steps.length - before).toBeLessThan(400);
      expect(await isAnswering()).toBeTrue();
    }
  });
});

describe("a server", () => {
  test("refuses when too many wait, and answers those that do", async () => {
    const stop = new AbortController();
    const before = server.steps.length;
    // It rejects where it is aborted before its answer begins: handled from the start, as that is before it is awaited.
    const first = Promise.allSettled([server.post(textPath, { ...long, stream: true }, { signal: stop.signal })]);
    await until(() => server.steps.length > before);
    const others = Array.from({ length: 20 }, () => server.post(textPath, { prompt: "a b", max_tokens: 1 }));
    const refused = await Promise.race(others);
    expect(refused.headers.get("Retry-After")).toBe("1");
    expect(await refusal(refused)).toMatchObject({ status: 429, type: "rate_limit_error", code: "queue_full" });
    stop.abort();
    const statuses = (await Promise.all(others)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBe(16);
    expect(statuses.filter((status) => status === 429).length).toBe(4);
    await first;
  });

  test("says of a step that failed that it did, and goes on", async () => {
    const { model } = server;
    const { step } = model;
    const log = console.error;
    const logged: unknown[] = [];
    console.error = (error: unknown) => logged.push(error);
    try {
      model.step = () => Promise.reject(new Error("out of luck"));
      expect(await refusal(await server.post(textPath, { ...long }))).toMatchObject({
        status: 500,
        type: "server_error",
      });
      model.step = async (parts, options) => ({ ...(await step(parts, options)), tokens: [undefined] });
      const events = await eventsOf(await server.post(textPath, { ...long, stream: true }));
      expect(JSON.parse(events.at(-1) as string)).toMatchObject({ error: { code: "internal_error" } });
    } finally {
      model.step = step;
      console.error = log;
    }
    expect(logged.map(String)).toEqual(["Error: out of luck", expect.stringContaining("not numbers")]);
    expect(await isAnswering()).toBeTrue();
  });
});

describe("bun examples/llama --serve", () => {
  const root = resolve(import.meta.dir, "../../..");
  const command = (...args: string[]) => [process.execPath, "examples/llama", ...args];

  test("answers as the command line does, until Ctrl-C ends what runs, with status 130", async () => {
    const folder = endless();
    const child = Bun.spawn(
      command(folder, "--serve", "--port", "0", "--slots", "2", "--cache", "f16", "--seed", "3"),
      {
        cwd: root,
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    let log = "";
    const reader = child.stderr.getReader();
    while (!log.includes("at once")) log += new TextDecoder().decode((await reader.read()).value);
    const url = /http:\S+v1/.exec(log)?.[0] as string;
    const model = folder.split("/").at(-1);
    const ask = (fields: Body) =>
      fetch(join(url, "chat/completions"), { method: "POST", body: JSON.stringify({ model, messages, ...fields }) });
    const text = Bun.spawnSync(
      command(folder, "hello", "--chat", "--cache", "f16", "--seed", "3", "--temperature", "1", "--max-tokens", "9"),
      { cwd: root },
    );
    const answer = (await (await ask({ max_tokens: 9 })).json()) as { choices: { message: { content: string } }[] };
    expect(`${answer.choices[0]?.message.content}\n`).toBe(text.stdout.toString());
    const whole = ask({ temperature: 0 });
    const running = await ask({ temperature: 0, stream: true });
    await Bun.sleep(100);
    child.kill("SIGINT");
    const events = await eventsOf(running);
    expect(JSON.parse(events.at(-1) as string)).toMatchObject({ error: { code: "shutting_down" } });
    expect(await refusal(await whole)).toMatchObject({ status: 503, code: "shutting_down" });
    expect(await child.exited).toBe(130);
    await expect(fetch(url)).rejects.toThrow();
  });

  test("says what is wrong", () => {
    const folder = endless();
    const taken = server.url.port;
    const cases: [args: string[], status: number, part: string][] = [
      [[folder, "a prompt", "--serve"], 2, "no PROMPT"],
      [[folder, "--serve", "--port", "65536"], 2, "--port"],
      [[folder, "--serve", "--slots", "0"], 2, "--slots"],
      [[folder, "--serve", "--chat"], 2, "--chat with --serve"],
      [[folder, "a prompt", "--host", "::1"], 2, "--host without --serve"],
      [[folder, "--serve", "--port", taken], 1, `--port ${taken}`],
    ];
    for (const [args, expected, part] of cases) {
      const { exitCode, stderr } = Bun.spawnSync(command(...args), { cwd: root });
      expect([args.slice(1), exitCode]).toEqual([args.slice(1), expected]);
      expect(stderr.toString()).toContain(part);
      expect(stderr.toString()).not.toContain("    at ");
    }
  });
});
