import { dirname, join } from "node:path";

/** File name of the native library on this platform. */
export const libraryFile = process.platform === "darwin" ? "libMetalAttention.dylib" : "libMetalAttention.so";

const served: readonly string[] = ["darwin-arm64", "linux-x64"];
const platform = `${process.platform}-${process.arch}`;

/** The npm package that has the library ready built for a platform. */
export const platformPackage = `metal-attention-${platform}`;

/** Whether there is such a package for this platform. */
export const hasPlatformPackage = served.includes(platform);

/** The library's file in the platform package, and why it cannot be used where that is known without a look at it. */
export function platformLibrary(): { readonly path: string; readonly fault?: string } {
  const file = join("lib", libraryFile);
  if (!hasPlatformPackage)
    return { path: join(platformPackage, file), fault: `there are only packages for ${served.join(" and ")}` };
  try {
    // From this file, so that the package is found wherever the installer put it.
    const manifest = Bun.resolveSync(`${platformPackage}/package.json`, import.meta.dir);
    return { path: join(dirname(manifest), file) };
  } catch {
    return { path: join(platformPackage, file), fault: "not installed where this program would find it" };
  }
}
