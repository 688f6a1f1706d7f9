import { expect, test } from "bun:test";
import type { Summary } from "./child.ts";

const mebibyte = 2 ** 20;

test("a million operations leave nothing behind", async () => {
  const rounds = 20;
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/child.ts`, "1000000", String(rounds)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  const { operations, opened, live, allocated, resident } = JSON.parse(output) as Summary;
  expect(operations).toBe(1_000_000);
  expect(opened).toEqual({ device: 1, buffer: 140_000, pipeline: 10_000, pass: 100_000 });
  expect(live).toEqual({ device: 0, pipeline: 0, pass: 0 });
  expect(allocated).toBe(0);
  // The collector of JavaScript lets the figure go up and down, so the least of a few rounds counts. Four are warm-up.
  expect(resident).toHaveLength(rounds);
  const growth = Math.min(...resident.slice(-6)) - Math.min(...resident.slice(4, 10));
  expect(growth).toBeLessThan(2 * mebibyte);
});
