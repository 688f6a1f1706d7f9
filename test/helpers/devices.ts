import { afterAll } from "bun:test";
import { openWithThreads, type Settings } from "../../scripts/lib/open-device.ts";
import type { Device } from "../../src/index.ts";

/** Devices of one thread and of two, with further settings, until the tests of a file have ended. */
export function oneAndTwoThreads(settings?: Settings): readonly [Device, Device] {
  const devices = [openWithThreads(1, settings), openWithThreads(2, settings)] as const;
  afterAll(() => {
    for (const device of devices) device.dispose();
  });
  return devices;
}
