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

    const undeclared = [
      { what: "a method", from: "func commit()", to: "func submit()", message: "has no member 'commit'" },
      {
        what: "the type of a property",
        from: "var maxBufferLength: Int { get }",
        to: "var maxBufferLength: UInt64 { get }",
        message: "cannot assign value of type 'UInt64'",
      },
    ];

    // By one compile: each has a message of its own.
    test(`what Apple does not declare is refused: ${undeclared.map(({ what }) => what).join(", ")}`, async () => {
      using stubs = await AppleStubs.compile((text) =>
        undeclared.reduce((changed, { from, to }) => changed.replace(from, to), text),
      );
      const { status, errors } = await stubs.check();
      expect(status).not.toBe(0);
      for (const { message } of undeclared) expect(errors).toContain(message);
    });
  });
