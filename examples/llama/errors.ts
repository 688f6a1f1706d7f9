/** What of a model is at fault. */
export type ModelErrorCode = "architecture" | "config" | "weights" | "tokenizer" | "request";

/** The only error that the example throws on purpose; those of the library pass through. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
