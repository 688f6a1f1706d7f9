import { expect, test } from "bun:test";

if (process.platform === "linux")
  test("a buffer for which there is no memory is refused, and made once there is", async () => {
    const child = Bun.spawn([process.execPath, `${import.meta.dir}/exhaustion-child.ts`], {
      stdout: "pipe",
      stderr: "pipe",
    });
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect([await child.exited, errors]).toEqual([0, ""]);
    expect(JSON.parse(output)).toEqual({
      refused: -7,
      message: "ma_buffer_create: the device could not allocate a buffer of 1073741824 bytes",
      untouched: true,
      accepted: 0,
      released: 0,
    });
  });
