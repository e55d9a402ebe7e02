// Counts the bytes that one client has sent as incomplete frames, or as frames that are not answered yet.
// Small frames are not counted: a connection may always send one.

import type { Shares } from "../shares.ts";

/** A frame of at most this size is not counted. */
const SMALL_BYTES = 128 * 1024;

export class FrameBytes {
  readonly #shares: Shares;
  readonly #who: string;
  /** Number of bytes received since the last complete frame. */
  #unfinished = 0;
  /** Number of bytes of `#unfinished` that are counted against the caller's share. */
  #taken = 0;

  /** `who`: the owner of the share. */
  constructor(shares: Shares, who: string) {
    this.#shares = shares;
    this.#who = who;
  }

  /** Counts a piece of a frame. Returns false if the share is used up. */
  came(bytes: number): boolean {
    this.#unfinished += bytes;
    if (this.#unfinished <= SMALL_BYTES) return true;
    const wanted = this.#unfinished - this.#taken;
    if (!this.#shares.take(this.#who, wanted)) return false;
    this.#taken += wanted;
    return true;
  }

  /** Called when the frame is complete, or the connection has ended. */
  settle(): void {
    if (this.#taken > 0) this.#shares.give(this.#who, this.#taken);
    this.#taken = 0;
    this.#unfinished = 0;
  }

  /**
   * Counts a whole frame until the returned function is called. Returns undefined if the share is used up.
   */
  hold(bytes: number): (() => void) | undefined {
    if (bytes <= SMALL_BYTES) return () => {};
    if (!this.#shares.take(this.#who, bytes)) return undefined;
    return () => this.#shares.give(this.#who, bytes);
  }
}
