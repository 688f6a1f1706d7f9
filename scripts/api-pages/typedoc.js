import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const disposed = [
  "Device",
  "KvCache",
  "KvSequence",
  "Pass",
  "Pipeline",
  "RecordedPass",
  "RecordingPass",
  "Tensor",
  "TileClasses",
];

export default {
  entryPoints: ["src/index.ts", "src/reference/index.ts", "src/safetensors/index.ts"].map((path) => join(root, path)),
  tsconfig: join(root, "tsconfig.json"),
  name: "metal-attention",
  includeVersion: true,
  readme: "none",
  disableGit: true,
  disableSources: true,
  githubPages: false,
  excludeInternal: true,
  customCss: join(import.meta.dirname, "tables.css"),
  projectDocuments: [join(root, "build/typedoc/shapes.md")],
  treatWarningsAsErrors: true,
  requiredToBeDocumented: ["Class", "Interface", "Function", "TypeAlias", "Variable"],
  // A shape at the beginning of a comment, "[H]: ...", is no definition of a link.
  markdownItLoader: (parser) => parser.disable("reference"),
  validation: { notExported: true, invalidLink: true, notDocumented: true, invalidPath: false },
  intentionallyNotDocumented: disposed.map((name) => `index.${name}.[dispose]`),
  // What they are is shown where they are used.
  intentionallyNotExported: [
    "Support",
    "accessBits",
    "OneOrBoth",
    "QuantizedCacheArgs",
    "dispatchCodes",
    "VectorScalar",
    "elementSizes",
    "ConstantOf",
    "LongDType",
    "MetalAttentionErrorDetails",
  ],
};
