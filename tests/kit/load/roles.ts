// The clients of a load test, by role. Some write and read, some only read, some stop reading for a while or
// for ever, and some disconnect and return.

import type { Dice } from "../dice.ts";
import { type Fleet, TOKEN } from "../process/fleet.ts";
import { keyOf, sleep, TOKEN_OF_ALL, tokenOf } from "./ground.ts";
import { LoadReader, type ReaderTotals } from "./reader.ts";

/**
 * After this number of runs a session is reset, because a transcript that only grows is another kind of load.
 */
const RESET_EVERY = 12;
const HISTORY_LIMIT = 100;
/** Time after which a writer gives up on a run that sends no events. */
const RUN_MAX_MS = 120_000;

/** A run that its writer has requested. */
interface Sent {
  readonly key: string;
  readonly sentAt: number;
  endedAt?: number;
}

/** State that all clients of one load test share. */
export interface Load {
  readonly luck: Dice;
  readonly fleet: Fleet;
  /** Sent messages of each session, oldest first. */
  readonly sent: readonly Sent[][];
  /** Number of resets of each session so far. */
  readonly resets: number[];
  over: boolean;
}

export function newTotals(): ReaderTotals {
  return { events: 0, gaps: 0, twice: 0, connects: 0, closes: new Map() };
}

interface ReaderPosition {
  readonly session: number;
  /** Index of the gateway process to which the client connects. */
  readonly at: number;
}

/** A client that reads one session only. */
export class OneReader extends LoadReader {
  readonly session: number;
  joinedAt = 0;

  constructor(
    { fleet }: Load,
    { session, at }: ReaderPosition,
    totals: ReaderTotals,
    onEnd?: (runId: string) => void,
  ) {
    const listens = onEnd === undefined ? {} : { onEnd };
    super({ url: () => fleet.url(at), token: tokenOf(session), sessions: 1, totals, ...listens });
    this.session = session;
  }

  override async join(): Promise<void> {
    await super.join();
    this.joinedAt = performance.now();
  }

  /** Returns the number of run ends that the client has missed. */
  missed(load: Load): number {
    const whole = (load.sent[this.session] ?? []).filter((sent) => sent.sentAt >= this.joinedAt);
    return whole.filter(({ key, endedAt }) => endedAt !== undefined && !this.ends.has(key)).length;
  }
}

/** Writes to its session repeatedly, each time after the end of the run. */
export class Writer extends OneReader {
  readonly #load: Load;
  readonly #told = new Map<string, () => void>();
  failures = 0;

  constructor(load: Load, place: ReaderPosition, totals: ReaderTotals) {
    super(load, place, totals, (runId) => this.#told.get(runId)?.());
    this.#load = load;
  }

  async write(admin: LoadReader, firstAfterMs: number): Promise<void> {
    const { session } = this;
    const load = this.#load;
    await sleep(firstAfterMs);
    for (let number = 1; !load.over; number += 1) {
      const key = `s${session}-${number}`;
      const sent: Sent = { key, sentAt: performance.now() };
      load.sent[session]?.push(sent);
      const ended = new Promise<void>((resolve) => this.#told.set(key, resolve));
      const params = { sessionKey: keyOf(session), message: `run ${key}`, idempotencyKey: key };
      await this.request("chat.send", params);
      const late = sleep(RUN_MAX_MS).then(() => Promise.reject(new Error(`${key} does not end`)));
      late.catch(() => undefined);
      await Promise.race([ended, late]);
      this.#told.delete(key);
      sent.endedAt = performance.now();
      if (number % RESET_EVERY !== 0 || load.over) continue;
      load.resets[session] = (load.resets[session] ?? 0) + 1;
      await admin.request("sessions.reset", { key: keyOf(session) });
    }
  }
}

/** Pauses the reading of a client for some seconds, again and again. */
export async function pauseNowAndThen(load: Load, reader: OneReader): Promise<void> {
  while (!load.over) {
    await sleep(2_000 + load.luck.below(6_000));
    reader.pause();
    await sleep(1_000 + load.luck.below(3_000));
    reader.resume();
  }
}

/**
 * Returns the number of runs that ended while the client was disconnected and that the history does not
 * contain.
 */
async function notInHistory(load: Load, reader: OneReader): Promise<number> {
  const { session } = reader;
  const [resets, ended] = [load.resets[session], (load.sent[session] ?? []).filter((sent) => sent.endedAt)];
  const page = await reader.request("chat.history", { sessionKey: keyOf(session), limit: HISTORY_LIMIT });
  // The session was reset, and the new transcript does not contain the earlier runs.
  if (resets !== load.resets[session]) return 0;
  const text = JSON.stringify(page.messages);
  const last = ended.slice(-RESET_EVERY + 1).filter((sent) => !isBeforeReset(load, session, sent.key));
  return last.filter(({ key }) => !text.includes(`answer to ${key}:`)).length;
}

function isBeforeReset(load: Load, session: number, key: string): boolean {
  return Number(key.split("-")[1]) <= (load.resets[session] ?? 0) * RESET_EVERY;
}

/**
 * Until the load ends: disconnects without a close frame, reconnects and reads the history. Returns how many
 * ends of runs it missed and did not find in the history either.
 */
export async function comeAndGo(load: Load, reader: OneReader): Promise<number> {
  let lost = 0;
  while (!load.over) {
    await sleep(2_000 + load.luck.below(5_000));
    reader.leave();
    await sleep(load.luck.below(4_000));
    if (load.over) break;
    await reader.join();
    lost += await notInHistory(load, reader);
  }
  return lost;
}

/** Reports when a connection has disappeared from a process's list of clients. */
export interface Presence {
  /** Resolves when this connection was in the list and has disappeared from it. */
  gone(connId: string): Promise<void>;
}

/** Reads every session, stops reading until the gateway closes the connection, and repeats this. */
export async function stopReading(
  load: Load,
  at: number,
  presence: Presence,
  totals: ReaderTotals,
): Promise<void> {
  const { fleet, luck } = load;
  const url = (): string => fleet.url(at);
  const reader = new LoadReader({ url, token: TOKEN_OF_ALL, sessions: Number.MAX_SAFE_INTEGER, totals });
  while (!load.over) {
    await sleep(luck.below(8_000));
    await reader.join();
    reader.pause();
    let over = false;
    const stop = (async () => {
      while (!load.over) await sleep(200);
      over = true;
    })();
    await Promise.race([presence.gone(reader.connId), stop]);
    if (over) break;
    // Reading continues after the close, because data arrives before the close code.
    const closed = reader.closed();
    reader.resume();
    await closed;
  }
  reader.leave();
}

/** An operator with full access: it reads presence and status, and resets sessions. */
export class Admin extends LoadReader implements Presence {
  readonly #seen = new Set<string>();
  readonly #waiting = new Map<string, () => void>();

  constructor(fleet: Fleet, at: number, totals: ReaderTotals) {
    super({
      url: () => fleet.url(at),
      token: TOKEN,
      sessions: Number.MAX_SAFE_INTEGER,
      totals,
      onEvent: (event, payload) => {
        if (event === "presence") this.#present(payload.presence as { connId: string }[]);
      },
    });
  }

  gone(connId: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(connId, resolve));
  }

  #present(members: readonly { connId: string }[]): void {
    const there = new Set(members.map((member) => member.connId));
    for (const [connId, resolve] of this.#waiting) {
      if (there.has(connId)) this.#seen.add(connId);
      else if (this.#seen.delete(connId)) {
        this.#waiting.delete(connId);
        resolve();
      }
    }
  }
}
