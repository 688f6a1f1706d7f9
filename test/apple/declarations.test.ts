import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { AppleStubs, builtModules } from "./stubs.ts";
import { declarations } from "./symbols.ts";

/** What SoftMetal declares besides: errors that say what went wrong without Foundation, whose spelling they take. */
const ownDeclarations = ["MTLCommandBufferError", "MTLLibraryError"].flatMap((name) => [
  `swift.property ${name}.description: var description: String { get }`,
  `swift.property ${name}.localizedDescription: var localizedDescription: String { get }`,
]);

/** What comes with Foundation, or with Swift itself, on a Mac. */
const foundationDeclarations = [
  "swift.typealias CFTimeInterval: typealias CFTimeInterval = Double",
  "swift.struct Data: struct Data",
  "swift.method Data.withUnsafeBytes(_:): func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result",
  "swift.typealias AutoreleasingUnsafeMutablePointer: typealias AutoreleasingUnsafeMutablePointer<Pointee> = UnsafeMutablePointer<Pointee>",
];

/** `allocatedSize` is MTLAllocation's there, and so MTLResource's too. */
const allocation = (line: string): string => line.replace("MTLAllocation.allocatedSize", "MTLResource.allocatedSize");

async function apple(stubs: AppleStubs): Promise<string[]> {
  const lines = await declarations("Metal", stubs.folder);
  return lines
    .filter((line) => !line.startsWith("swift.protocol MTLAllocation"))
    .map(allocation)
    .sort();
}

// A Mac has the real ones.
if (process.platform === "linux")
  describe("the declarations of SoftMetal and of Apple's Metal", () => {
    let software: string[] = [];

    beforeAll(async () => {
      const built = await builtModules();
      const lines = await declarations("SoftMetal", join(built, "Modules"), join(built, "CSoftMetal.build"));
      const besides = [...ownDeclarations, ...foundationDeclarations];
      expect(lines).toEqual(expect.arrayContaining(besides));
      software = lines.filter((line) => !besides.includes(line));
    });

    test("SoftMetal declares what Apple's Metal declares of the subset, and nothing else", async () => {
      using stubs = await AppleStubs.compile();
      const expected = await apple(stubs);
      expect(expected.length).toBeGreaterThan(150);
      expect(software).toEqual(expected);
    });

    test.each([
      [
        "a label",
        "threadsPerThreadgroup: MTLSize)\n  func dispatchThreads",
        "threadsPer: MTLSize)\n  func dispatchThreads",
      ],
      ["a type", "var maxBufferLength: Int { get }", "var maxBufferLength: UInt { get }"],
      ["a missing case", "  case timeout = 2\n", ""],
      ["a case too many", "  case timeout = 2\n", "  case timeout = 2\n    case access = 99\n"],
    ])("another declaration is seen: %s", async (_name, from, to) => {
      let edits = 0;
      using stubs = await AppleStubs.compile((text) => {
        if (text.includes(from)) edits++;
        return text.replace(from, to);
      });
      expect(edits).toBe(1);
      expect(await apple(stubs)).not.toEqual(software);
    });
  });
