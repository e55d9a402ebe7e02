// Owns passes: tokens with which the program of an ACP agent calls its session's tools, with that session's
// rights only.
// PS1: a pass is valid for one session, in this process, while the session's program runs. It is not stored.
// PS2: a pass is accepted only while a run of that session is active in this process, and each call belongs
//      to that run: its chain, hops, waits and end count (I6, I7, I8).

import { createHash } from "node:crypto";
import type { Run } from "../core/shapes/run.ts";
import type { RunWait } from "../engine/lanes/waits.ts";

/** The active run that a tool call belongs to. */
export interface ActiveRun {
  readonly run: Run;
  readonly wait: RunWait;
  readonly signal: AbortSignal;
  duringCall<T>(work: () => Promise<T>): Promise<T>;
}

interface Pass {
  readonly token: string;
  /** Resolves when the program has received the list of the session's tools. */
  readonly listed: PromiseWithResolvers<void>;
}

const digest = (token: string): string => createHash("sha256").update(token).digest("hex");

export class Passes {
  readonly #newId: () => string;
  /**
   * Sessions by the digest of their token, so that the time of a look-up reveals nothing about valid tokens.
   */
  readonly #sessions = new Map<string, string>();
  readonly #passes = new Map<string, Pass>();
  readonly #runs = new Map<string, ActiveRun>();

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  /** Returns the session's pass. The first call creates it. */
  passFor(sessionKey: string): string {
    return this.#passOf(sessionKey).token;
  }

  /**
   * Resolves when the program with the session's current pass has received the list of the session's tools.
   */
  listed(sessionKey: string): Promise<void> {
    return this.#passOf(sessionKey).listed.promise;
  }

  /** Records that the session's program has received the list of the session's tools. */
  noteListed(sessionKey: string): void {
    this.#passes.get(sessionKey)?.listed.resolve();
  }

  #passOf(sessionKey: string): Pass {
    const known = this.#passes.get(sessionKey);
    if (known !== undefined) return known;
    const token = `pass.${this.#newId()}${this.#newId()}`.replaceAll("-", "");
    const pass: Pass = { token, listed: Promise.withResolvers<void>() };
    this.#passes.set(sessionKey, pass);
    this.#sessions.set(digest(token), sessionKey);
    return pass;
  }

  revoke(sessionKey: string): void {
    const pass = this.#passes.get(sessionKey);
    if (pass === undefined) return;
    this.#passes.delete(sessionKey);
    this.#sessions.delete(digest(pass.token));
  }

  /** Returns the session of a pass. */
  sessionOf(token: string): string | undefined {
    return this.#sessions.size === 0 ? undefined : this.#sessions.get(digest(token));
  }

  /** Marks a run of the session as active, until the returned function is called. */
  begin(sessionKey: string, inHand: ActiveRun): () => void {
    this.#runs.set(sessionKey, inHand);
    return () => {
      if (this.#runs.get(sessionKey) === inHand) this.#runs.delete(sessionKey);
    };
  }

  runOf(sessionKey: string): ActiveRun | undefined {
    return this.#runs.get(sessionKey);
  }
}
