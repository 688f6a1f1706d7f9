/** Preloaded by `bun run test:language`: after the last file, how many cases the suite holds and ran. */
import { afterAll, expect } from "bun:test";
import { counts } from "./harness.ts";

afterAll(() => {
  console.log(`\nlanguage cases: ${counts.held} held, ${counts.ran} ran`);
  expect(counts.held).toBeGreaterThan(300);
  expect(counts.ran).toBe(counts.held);
});
