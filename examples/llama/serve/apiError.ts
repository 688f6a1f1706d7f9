/** A refusal in the form of OpenAI's API. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Of the HTTP answer. */
  readonly status: number;
  readonly code: string;
  /** The field of the request at fault. */
  readonly param: string | null;

  constructor(status: number, code: string, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }

  get body(): object {
    const { message, param, code, status } = this;
    return { error: { message, type: typeOf(status), param, code } };
  }

  get response(): Response {
    const { status, body } = this;
    return Response.json(body, { status, headers: status === 429 ? { "Retry-After": "1" } : {} });
  }
}

function typeOf(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** Any error as one of these; the text of one that no one expected stays in the server. */
export function apiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  console.error(error);
  return new ApiError(500, "internal_error", "the answer could not be computed; the server's log says why");
}
