import { ModelError } from "../errors.ts";
import type { Tokenizer } from "../files/tokenizer.ts";
import type { Model } from "../model/model.ts";
import { Api, type RequestDefaults } from "./api.ts";
import { ApiError, apiError } from "./apiError.ts";
import { Batch } from "./batch.ts";
import { mostBytes } from "./request.ts";

export interface ServeOptions {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  /** Requests that run at once. */
  readonly slots: number;
  /** What the model is called. */
  readonly name: string;
  readonly defaults: RequestDefaults;
}

/** Requests that wait for each that runs. */
const waitingPerSlot = 16;

/** A server of OpenAI's API over a model. */
export interface ModelServer {
  readonly url: URL;
  /** Takes no more requests, ends those that run by an error of status 503, and returns when all is closed. */
  close(): Promise<void>;
}

/** Answers requests from now on. Errors: `serve` for an address that cannot be had. */
export function serve(model: Model, tokenizer: Tokenizer, options: ServeOptions): ModelServer {
  const { host, port, slots, name, defaults } = options;
  const batch = new Batch(model, slots, slots * waitingPerSlot);
  const api = new Api({ model, tokenizer, batch, name, defaults });
  const server = listen(host, port, async (request, server) => {
    try {
      // An answer may take its time; a request may not.
      return await route(api, request, () => server.timeout(request, 0));
    } catch (error) {
      return apiError(error).response;
    }
  });
  const close = async () => {
    const stopped = server.stop();
    await batch.close(new ApiError(503, "shutting_down", "the server is shutting down"));
    // Connections without a request may stay open as long as their clients like.
    await Promise.race([stopped, Bun.sleep(1000)]);
    await server.stop(true);
  };
  return { url: server.url, close };
}

type Server = Bun.Server<undefined>;

function listen(host: string, port: number, fetch: (request: Request, server: Server) => Promise<Response>): Server {
  try {
    return Bun.serve({ hostname: host, port, maxRequestBodySize: 2 * mostBytes, fetch });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ModelError("serve", `--host ${host} --port ${port}: ${reason}`, error);
  }
}

async function route(api: Api, request: Request, onRead: () => void): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [method, answer] = endpoint(api, pathname, request, onRead) ?? [];
  if (answer === undefined) throw new ApiError(404, "unknown_url", `there is no ${pathname.slice(0, 200)}`);
  if (request.method !== method) throw new ApiError(405, "method_not_allowed", `${pathname} takes ${method} only`);
  return answer();
}

type Endpoint = readonly [method: string, answer: () => Response | Promise<Response>];

function endpoint(api: Api, path: string, request: Request, onRead: () => void): Endpoint | undefined {
  const models = "/v1/models";
  if (path === models) return ["GET", () => api.models()];
  if (path.startsWith(`${models}/`)) return ["GET", () => api.modelNamed(decoded(path.slice(models.length + 1)))];
  if (path === "/v1/chat/completions") return ["POST", () => api.chat(request, onRead)];
  if (path === "/v1/completions") return ["POST", () => api.completion(request, onRead)];
  return undefined;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
