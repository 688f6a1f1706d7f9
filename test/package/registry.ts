import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** A package of a `Registry`. */
export interface Archive {
  /** Its package.json. */
  readonly manifest: { readonly name: string; readonly version: string; readonly private?: boolean };
  /** The .tgz file. */
  readonly path: string;
}

/** A registry of npm packages on this machine, so that an installation needs no network. */
export class Registry implements Disposable {
  readonly #archives: readonly Archive[];
  readonly #server: Bun.Server<undefined>;

  constructor(archives: readonly Archive[]) {
    this.#archives = archives;
    this.#server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.#answer(request) });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/`;
  }

  [Symbol.dispose](): void {
    this.#server.stop(true);
  }

  #answer(request: Request): Response {
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    const archive = this.#archives.find(({ path }) => basename(path) === name);
    if (archive !== undefined) return new Response(Bun.file(archive.path));
    const versions = this.#archives.filter(({ manifest }) => manifest.name === name);
    const [latest] = versions;
    if (latest === undefined) return new Response("no such package", { status: 404 });
    return Response.json({
      name,
      "dist-tags": { latest: latest.manifest.version },
      versions: Object.fromEntries(versions.map((version) => [version.manifest.version, this.#describe(version)])),
    });
  }

  #describe({ manifest, path }: Archive): object {
    const digest = createHash("sha512").update(readFileSync(path)).digest("base64");
    return { ...manifest, dist: { tarball: this.url + basename(path), integrity: `sha512-${digest}` } };
  }
}
