// Owns the passes of programs that work for a session: with one of them a program calls the session's tools
// from outside, as the session and as nobody else.
// PS1: a pass is good for one session, while its program is there, in this process; it is kept nowhere.
// PS2: it opens tools only while a run of that session is under way here, and each call is that run's: its
//      chain, its hops, its waits and its end count (I6, I7, I8).

import { createHash } from "node:crypto";
import type { Run } from "../core/run.ts";
import type { RunWait } from "../engine/waits.ts";

/** What a tool call takes part in. */
export interface RunInHand {
  readonly run: Run;
  readonly wait: RunWait;
  readonly signal: AbortSignal;
  duringCall<T>(work: () => Promise<T>): Promise<T>;
}

const digest = (token: string): string => createHash("sha256").update(token).digest("hex");

export class Passes {
  readonly #newId: () => string;
  /** By the digest of a token: what is looked up tells nothing of what is right. */
  readonly #sessions = new Map<string, string>();
  readonly #tokens = new Map<string, string>();
  readonly #runs = new Map<string, RunInHand>();

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  /** The session's pass; made at the first call. */
  passFor(sessionKey: string): string {
    const known = this.#tokens.get(sessionKey);
    if (known !== undefined) return known;
    const token = `pass.${this.#newId()}${this.#newId()}`.replaceAll("-", "");
    this.#tokens.set(sessionKey, token);
    this.#sessions.set(digest(token), sessionKey);
    return token;
  }

  revoke(sessionKey: string): void {
    const token = this.#tokens.get(sessionKey);
    if (token === undefined) return;
    this.#tokens.delete(sessionKey);
    this.#sessions.delete(digest(token));
  }

  /** The session that a token is a pass of. */
  sessionOf(token: string): string | undefined {
    return this.#sessions.size === 0 ? undefined : this.#sessions.get(digest(token));
  }

  /** A run of the session begins to be executed here; the returned function ends that. */
  begin(sessionKey: string, inHand: RunInHand): () => void {
    this.#runs.set(sessionKey, inHand);
    return () => {
      if (this.#runs.get(sessionKey) === inHand) this.#runs.delete(sessionKey);
    };
  }

  runOf(sessionKey: string): RunInHand | undefined {
    return this.#runs.get(sessionKey);
  }
}
