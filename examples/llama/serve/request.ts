import * as z from "zod";
import { ApiError } from "./apiError.ts";

/** Most bytes of a request. */
export const mostBytes = 2 ** 20;

/** A field that clients send and that changes nothing here. */
const ignored = z.unknown().optional();
/** A field that is refused where it would change the answer. */
const only = (...values: readonly (string | number | boolean)[]) => z.literal(values).nullish();

const sampling = {
  model: z.string(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  seed: z.int().nullish(),
  max_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: only(1),
  frequency_penalty: only(0),
  presence_penalty: only(0),
  logit_bias: z.strictObject({}).nullish(),
  user: ignored,
  metadata: ignored,
};

const textPart = z.strictObject({ type: z.literal("text"), text: z.string() });
const message = z.strictObject({
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: z.union([
    z.string(),
    z
      .array(textPart)
      .min(1)
      .transform((parts) => parts.map(({ text }) => text).join("")),
  ]),
  name: ignored,
});

const chatRequest = z.strictObject({
  ...sampling,
  messages: z.array(message).min(1),
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: only(false),
  top_logprobs: only(0),
  response_format: z.strictObject({ type: z.literal("text") }).nullish(),
  tools: z.array(z.unknown()).max(0).nullish(),
  tool_choice: only("none", "auto"),
  parallel_tool_calls: ignored,
  store: only(false),
  service_tier: ignored,
  prompt_cache_key: ignored,
  safety_identifier: ignored,
});
export type ChatRequest = z.output<typeof chatRequest>;

const completionRequest = z.strictObject({
  ...sampling,
  prompt: z.string(),
  best_of: only(1),
  echo: only(false),
  logprobs: z.null().optional(),
  suffix: z.null().optional(),
});
export type CompletionRequest = z.output<typeof completionRequest>;

/** Reads the body of `/v1/chat/completions`. Errors: `ApiError` 400 with the field, 413. */
export async function readChat(request: Request): Promise<ChatRequest> {
  const chat = checked(chatRequest, await readJsonBody(request));
  const { max_tokens: older, max_completion_tokens: newer } = chat;
  if (older && newer && older !== newer) {
    throw new ApiError(400, "invalid_value", `max_tokens is ${older}, max_completion_tokens ${newer}`, "max_tokens");
  }
  return chat;
}

/** Reads the body of `/v1/completions`. Errors: `ApiError` 400 with the field, 413. */
export async function readCompletion(request: Request): Promise<CompletionRequest> {
  return checked(completionRequest, await readJsonBody(request));
}

function checked<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue === undefined) throw result.error;
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const param = [...issue.path, ...unknown].join(".").slice(0, 200);
  const code = unknown.length > 0 ? "unknown_parameter" : "invalid_value";
  throw new ApiError(400, code, param === "" ? issue.message : `${param}: ${issue.message}`, param || null);
}

async function readJsonBody(request: Request): Promise<unknown> {
  const tooLong = new ApiError(413, "request_too_large", `a request has at most ${mostBytes} bytes`);
  if (Number(request.headers.get("Content-Length") ?? 0) > mostBytes) throw tooLong;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    let text = "";
    let length = 0;
    for await (const bytes of request.body ?? []) {
      length += bytes.length;
      if (length > mostBytes) throw tooLong;
      text += decoder.decode(bytes, { stream: true });
    }
    return JSON.parse(text + decoder.decode());
  } catch (error) {
    if (error instanceof ApiError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new ApiError(400, "invalid_json", `the body is no JSON in UTF-8: ${reason}`);
  }
}
