/** Makes a pipeline of the kernel `many` of the source given. */
import { Device } from "../../src/index.ts";

using device = Device.open();
device.registerSource("many.metal", Bun.argv[2] as string);
device.pipeline("many").dispose();
