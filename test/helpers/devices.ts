import { afterAll } from "bun:test";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import type { Device } from "../../src/index.ts";

/** Devices of one thread and of two, until the tests of a file have ended. */
export function oneAndTwoThreads(): readonly [Device, Device] {
  const devices = [openWithThreads(1), openWithThreads(2)] as const;
  afterAll(() => {
    for (const device of devices) device.dispose();
  });
  return devices;
}
