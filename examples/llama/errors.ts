/** What is at fault: a part of a model, what was asked for, or the address of a server. */
export type ModelErrorCode = "architecture" | "config" | "weights" | "tokenizer" | "request" | "serve";

/** The only error that the example throws on purpose; those of the library pass through. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
