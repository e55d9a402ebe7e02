// Owns the count of what one client has sent that is no whole frame yet, or a frame that is not answered.
// FB1: small frames are not counted: a connection may always have one of them.

import type { Shares } from "./shares.ts";

/** Up to so many bytes a frame costs no share. */
const SMALL_BYTES = 128 * 1024;

export class FrameBytes {
  readonly #shares: Shares;
  readonly #who: string;
  /** Since the last whole frame. */
  #unfinished = 0;
  /** Of these, those that were taken from the share. */
  #taken = 0;

  /** `who`: whose share it is. */
  constructor(shares: Shares, who: string) {
    this.#shares = shares;
    this.#who = who;
  }

  /** A piece of a frame came. False: the share is used up. */
  came(bytes: number): boolean {
    this.#unfinished += bytes;
    if (this.#unfinished <= SMALL_BYTES) return true;
    const wanted = this.#unfinished - this.#taken;
    if (!this.#shares.take(this.#who, wanted)) return false;
    this.#taken += wanted;
    return true;
  }

  /** The frame is whole, or the connection has ended. */
  settle(): void {
    if (this.#taken > 0) this.#shares.give(this.#who, this.#taken);
    this.#taken = 0;
    this.#unfinished = 0;
  }

  /** Counts a whole frame until the returned function is called. Undefined: the share is used up. */
  hold(bytes: number): (() => void) | undefined {
    if (bytes <= SMALL_BYTES) return () => {};
    if (!this.#shares.take(this.#who, bytes)) return undefined;
    return () => this.#shares.give(this.#who, bytes);
  }
}
