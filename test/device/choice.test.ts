/** Which device is opened. A GPU's own answers are in the Swift tests, from a driver's double. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";

/** What `Device.open(options)` does in a process with these variables: a name, or a code with its message. */
function opened(options: string, variables: Record<string, string>): string {
  const code = `
    import { Device } from ${JSON.stringify(join(import.meta.dir, "../../src/index.ts"))};
    try {
      using device = Device.open(${options});
      console.log(device.info.name);
    } catch (error) {
      console.log(error.code + ": " + error.message);
    }`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", code], { env: { ...process.env, ...variables } });
  return stdout.toString() + stderr.toString();
}

test.each(["gpu", "", -1, 1.5, 1e300, Number.NaN, null, {}] as const)("%p is no device", (device) => {
  const error = thrownBy(() => Device.open({ device } as unknown as { device: number }));
  expect(error).toMatchObject({ code: "invalid-argument", argument: "options.device" });
});

test("the first device of the list opens", () => {
  using device = Device.open({ device: 0 });
  expect(device.info.name).not.toBe("");
});

if (process.platform === "linux")
  describe("on Linux", () => {
    const nowhere = { SOFTMETAL_CUDA: "/nowhere/libcuda.so.1", SOFTMETAL_DEVICE: "cpu" };

    test("the CPU is chosen by its name, whatever the environment says", () => {
      expect(opened('{ device: "cpu" }', { ...nowhere, SOFTMETAL_DEVICE: "nvidia" })).toMatch(
        /^SoftMetal \(.* threads?\)\n$/,
      );
    });

    test.each([
      ['{ device: "nvidia" }', "cpu"],
      ["{ device: 1 }", "cpu"],
      ["{}", "nvidia"],
      ["{}", "1"],
    ])("without a driver %s with SOFTMETAL_DEVICE=%s says what was looked for", (options, variable) => {
      const text = opened(options, { ...nowhere, SOFTMETAL_DEVICE: variable });
      expect(text).toStartWith("device-unavailable: ");
      expect(text).toContain("/nowhere/libcuda.so.1");
      expect(text).toContain("'cpu'");
    });

    test("a library that is no driver lacks its functions", () => {
      const text = opened('{ device: "nvidia" }', { SOFTMETAL_CUDA: "libm.so.6" });
      expect(text).toContain("libm.so.6 lacks cuInit");
    });

    test("a variable that names no device is refused", () => {
      const text = opened("{}", { SOFTMETAL_DEVICE: "gpu" });
      expect(text).toStartWith("device-unavailable: ");
      expect(text).toContain("SOFTMETAL_DEVICE: 'gpu' is no device");
    });
  });
