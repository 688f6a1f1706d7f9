/** What a user's platform package has, for `examples/compile.ts`; a checkout has none. */
declare module "metal-attention-linux-x64/files.js" {
  export const files: { readonly library: URL; readonly kernels?: URL };
}
