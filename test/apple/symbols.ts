import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import { runChecked } from "../helpers/run.ts";

const graphSchema = z.object({
  symbols: z.array(
    z.object({
      kind: z.object({ identifier: z.string() }),
      pathComponents: z.array(z.string()),
      declarationFragments: z.array(z.object({ spelling: z.string() })),
    }),
  ),
});

const targetSchema = z.object({ target: z.object({ unversionedTriple: z.string() }) });

/** What a Mac's SDK spells with Objective-C's protocols, Swift alone spells `AnyObject`. */
const objectProtocols = /\b(NSObjectProtocol|MTLAllocation)\b/;

/** Public declarations of a compiled module, one a line: kind, path, declaration; sorted. */
export async function declarations(module: string, ...folders: string[]): Promise<string[]> {
  const output = mkdtempSync(join(tmpdir(), "metal-attention-symbols-"));
  try {
    const info = JSON.parse(await runChecked(["swiftc", "-print-target-info"]));
    const { target } = targetSchema.parse(info);
    const options = ["-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", output];
    const paths = folders.flatMap((folder) => ["-I", folder]);
    const triple = ["-target", target.unversionedTriple];
    await runChecked(["swift", "symbolgraph-extract", "-module-name", module, ...options, ...triple, ...paths]);
    const graph = graphSchema.parse(await Bun.file(join(output, `${module}.symbols.json`)).json());
    const lines = graph.symbols.map(({ kind, pathComponents, declarationFragments }) => {
      const text = declarationFragments.map(({ spelling }) => spelling).join("");
      return `${kind.identifier} ${pathComponents.join(".")}: ${normalised(kind.identifier, text)}`;
    });
    return lines.sort();
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

/** The declaration as a caller sees it. */
function normalised(kind: string, text: string): string {
  if (kind === "swift.protocol") return text.replace(objectProtocols, "AnyObject");
  if (kind === "swift.class") return text.replace(/ : NSObject$/, "");
  if (kind !== "swift.property") return text.replace(/^override /, "");
  // A caller cannot tell a stored property from a computed one.
  if (text.startsWith("let ")) return `${text.replace("let", "var")} { get }`;
  return text.includes("{") ? text : `${text} { get set }`;
}
