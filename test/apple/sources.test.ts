import { describe, expect, test } from "bun:test";
import { AppleStubs } from "./stubs.ts";

// A Mac has the real ones.
if (process.platform === "linux")
  describe("the library's sources with Apple's modules", () => {
    test("the library's sources type-check against modules named Metal, Foundation, ObjectiveC and Darwin", async () => {
      using stubs = await AppleStubs.compile();
      const { status, errors } = await stubs.check();
      expect(errors).toBe("");
      expect(status).toBe(0);
    });

    test.each([
      ["a method of another name", "func commit()", "func submit()", "has no member 'commit'"],
      [
        "a property of another type",
        "var maxBufferLength: Int { get }",
        "var maxBufferLength: UInt64 { get }",
        "cannot assign value of type 'UInt64'",
      ],
    ])("what Apple does not declare is refused: %s", async (_name, from, to, message) => {
      using stubs = await AppleStubs.compile((text) => text.replace(from, to));
      const { status, errors } = await stubs.check();
      expect(status).not.toBe(0);
      expect(errors).toContain(message);
    });
  });
