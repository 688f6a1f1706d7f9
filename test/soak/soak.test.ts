import { expect, test } from "bun:test";
import type { Summary } from "./child.ts";

const mebibyte = 2 ** 20;

test("two million operations leave nothing behind", async () => {
  const rounds = 20;
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/child.ts`, "2000000", String(rounds)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  const { operations, opened, live, allocated, resident } = JSON.parse(output) as Summary;
  expect(operations).toBe(2_000_000);
  expect(opened).toEqual({ device: 1, buffer: 280_000, pipeline: 20_000, pass: 200_000 });
  expect(live).toEqual({ device: 0, pipeline: 0, pass: 0 });
  expect(allocated).toBe(0);
  // The collector of JavaScript lets the figure go up and down, at times by 5 MiB for good, so the least of a few rounds
  // counts. Four are warm-up. 16 bytes an operation, or 160 a pass, would be 16 MiB.
  expect(resident).toHaveLength(rounds);
  const growth = Math.min(...resident.slice(-6)) - Math.min(...resident.slice(4, 10));
  expect(growth).toBeLessThan(8 * mebibyte);
});
