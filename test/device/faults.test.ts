import { describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { run } from "../helpers/run.ts";

// In processes of their own, which a fault that is not caught would end.

const child = (args: readonly string[], env: Record<string, string | undefined> = {}) =>
  run([process.execPath, `${import.meta.dir}/faults-child.ts`, ...args], { env: { ...process.env, ...env } });

async function outcome<T>(args: readonly string[], env?: Record<string, string>): Promise<T> {
  const { status, output, errors } = await child(args, env);
  expect({ status, errors }).toEqual({ status: 0, errors: "" });
  return JSON.parse(output) as T;
}

interface Case {
  readonly name: string;
  readonly deed: string;
  readonly form: string;
  readonly failure?: { readonly code: string; readonly message: string };
  readonly fine: boolean;
}

const words: Readonly<Record<string, RegExp>> = {
  wild_write: /wrote to address 0x[0-9a-f]+, where there is no memory: outside its buffers/,
  wild_read: /read from address 0x[0-9a-f]+, where there is no memory: outside its buffers/,
  null_write: /wrote to address 0x0: a null pointer/,
  null_read: /read from address 0x18: a null pointer/,
  no_address: /touched an address that no memory can have/,
  protected: /wrote to address 0x[0-9a-f]+, which is protected/,
  stack_array: /wrote to address 0x[0-9a-f]+, where there is no memory/,
  large_array: /a thread ran out of stack; its private variables and arrays are too large/,
};

const device = openWith({});
const { backend } = device.info;
device.dispose();

// Elsewhere than on Linux the GPU's own faults are the system's.
if (backend === "SoftMetal")
  describe("a kernel that faults", () => {
    describe.each([
      { SOFTMETAL_THREADS: "1" },
      { SOFTMETAL_THREADS: "2" },
      { SOFTMETAL_THREADS: "2", SOFTMETAL_GUARD: "1" },
    ])("with %p", (settings) => {
      test.each(["main", "worker"])(
        "fails its pass and names itself, and the device goes on: %s thread",
        async (where) => {
          const cases = await outcome<Case[]>(["kinds", where], settings);
          expect(cases).toHaveLength(32);
          for (const { name, deed, failure, fine } of cases) {
            expect({ name, code: failure?.code, fine }).toEqual({ name, code: "execution", fine: true });
            expect(failure?.message).toContain(`kernel '${name}' (dispatch 1 of 1)`);
            expect(failure?.message).toMatch(words[deed] ?? /no words/);
          }
        },
      );
    });

    test("is found among the dispatches of its pass", async () => {
      const failure = await outcome<Case["failure"]>(["place"]);
      expect(failure?.message).toContain("kernel 'wild_write_loop' (dispatch 3 of 4)");
    });

    test.each(["1", "2"])(
      "leaves no threads, stacks or files behind, a thousand times, on %s threads",
      async (threads) => {
        const rounds = await outcome<
          { failures: number; fine: boolean; holdings: Record<"threads" | "files" | "maps" | "rss", number> }[]
        >(["many"], { SOFTMETAL_THREADS: threads });
        expect(rounds.map(({ failures, fine }) => [failures, fine])).toEqual([
          [250, true],
          ...Array.from({ length: 5 }, () => [200, true]),
        ]);
        const growth = (of: keyof (typeof rounds)[0]["holdings"]) =>
          rounds.slice(1).map(({ holdings }, i) => holdings[of] - (rounds[i]?.holdings[of] ?? 0));
        const total = (of: Parameters<typeof growth>[0]) => growth(of).reduce((sum, value) => sum + value, 0);
        // Bun starts threads of its own at any time; one a fault would be 1,000.
        expect(total("threads")).toBeLessThan(8);
        expect(total("files")).toBeLessThanOrEqual(0);
        // A set of stacks with their guards, for a second worker of the pool, is 128 and comes or goes in a round; in most
        // rounds none does. One mapping for each of the eight kinds of faults would be 25 a round.
        const [, , usual] = growth("maps").sort((a, b) => a - b);
        expect(usual).toBeLessThan(16);
        expect(total("rss")).toBeLessThan(32 * 1024);
      },
    );

    test.each(["main", "worker"])("stands beside Bun's own handlers: %s thread", async (where) => {
      const answers = await outcome<boolean[]>(["handlers", where]);
      expect(answers).toEqual(Array.from({ length: 80 }, () => true));
    });

    test("a fault that is no kernel's ends the process as it does without a device", async () => {
      const { output, ...ending } = await child(["crash"]);
      expect(output).toBe('"execution"\n');
      const plain = await run([process.execPath, "-e", 'require("bun:ffi").read.u8(8, 0)']);
      expect(plain.status).not.toBe(0);
      expect(ending.status).toBe(plain.status);
      const panic = /panic.*Segmentation fault at address 0x8/;
      expect(plain.errors).toMatch(panic);
      expect(ending.errors).toMatch(panic);
    });

    test("a signal that is sent ends the process", async () => {
      const script = `import { Device } from "${import.meta.dir}/../../src/index.ts"; Device.open(); console.log("open"); setInterval(() => {}, 1000);`;
      const sent = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "ignore" });
      await sent.stdout.getReader().read();
      sent.kill("SIGSEGV");
      expect(await sent.exited).not.toBe(0);
    });
  });
