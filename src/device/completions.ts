import type { Socket, TCPSocketConnectOptions } from "bun";
import { Block } from "../ffi/block.ts";
import { stateCodes } from "../ffi/generated/codes.ts";
import { structSizes } from "../ffi/generated/structs.ts";
import { checkStatus } from "../ffi/status.ts";
import type { DeviceLifetime, PassLifetime } from "./lifetime.ts";

const infoBlock = new Block(structSizes.MAPassInfo);

/**
 * Tells when the passes of one device have ended. The library makes no calls
 * into JavaScript: it writes a byte into a socket, of which this is the other
 * end, and the event loop wakes. The socket keeps the process alive while a
 * pass is awaited, and no longer.
 */
export class Completions {
  readonly #device: DeviceLifetime;
  /** What to do when a pass has ended. */
  readonly #awaited = new Map<PassLifetime, () => void>();
  #socket: Socket | undefined;
  #isOpen = false;
  #isLost = false;

  constructor(device: DeviceLifetime) {
    this.#device = device;
  }

  /** Passes whose end is awaited. */
  get passes(): Iterable<PassLifetime> {
    return this.#awaited.keys();
  }

  /** Opens the socket; to be called before a pass is committed that `ended` is to wait for. */
  open(): void {
    if (this.#isOpen) return;
    const { native, handle } = this.#device;
    const out = new Block(8);
    checkStatus(native, native.ma_device_events(handle, out.bytes));
    this.#isOpen = true;
    const options = {
      fd: out.u32[0] as number,
      socket: {
        open: (socket: Socket) => {
          this.#socket = socket;
          this.#hold();
        },
        data: () => this.#settle(),
        close: () => this.#lose(),
        error: () => this.#lose(),
      },
    };
    // Bun takes a descriptor, which its types of this function do not say.
    Bun.connect(options as object as TCPSocketConnectOptions<undefined>).catch(() => this.#lose());
  }

  /** Resolves when a pass that was committed with notice has ended, well or not. */
  ended(pass: PassLifetime): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited.set(pass, resolve);
    if (this.#isLost) this.#lose();
    if (this.#awaited.size === 1) this.#hold();
    return promise;
  }

  /** Closes the socket. */
  close(): void {
    this.#isOpen = false;
    this.#socket?.end();
    this.#socket = undefined;
  }

  /** Settles what has ended. A byte may stand for several passes, or for one that has been seen. */
  #settle(): void {
    const { native } = this.#device;
    for (const [pass, settle] of this.#awaited) {
      checkStatus(native, native.ma_pass_info(pass.handle, infoBlock.address));
      const state = infoBlock.u32[0];
      if (state !== stateCodes.completed && state !== stateCodes.failed) continue;
      this.#awaited.delete(pass);
      settle();
    }
    this.#hold();
  }

  /** Keeps the process alive as long as a pass is awaited. */
  #hold(): void {
    if (this.#awaited.size > 0) this.#socket?.ref();
    else this.#socket?.unref();
  }

  /** Without the socket, which none but a stranger closes, there is nothing left but to block. */
  #lose(): void {
    this.#socket = undefined;
    this.#isLost = true;
    for (const [pass, settle] of this.#awaited) {
      pass.wait();
      settle();
    }
    this.#awaited.clear();
  }
}
