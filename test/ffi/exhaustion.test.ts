import { expect, test } from "bun:test";
import { run } from "../helpers/run.ts";

if (process.platform === "linux")
  test("a buffer for which there is no memory is refused, and made once there is", async () => {
    const { status, output, errors } = await run([process.execPath, `${import.meta.dir}/exhaustion-child.ts`]);
    expect([status, errors]).toEqual([0, ""]);
    expect(JSON.parse(output)).toEqual({
      refused: -7,
      message: "the device could not allocate a buffer of 1073741824 bytes",
      untouched: true,
      accepted: 0,
      released: 0,
    });
  });
