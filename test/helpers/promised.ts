/** The head sizes that are promised, of attention and of the quantized cache: what the library's tables are held to. */
export const promisedHeadSizes: readonly number[] = [64, 80, 96, 112, 128, 192, 256, 512];
