// The state of a story outside the database: running work, accepted requests, planted secrets, and texts that
// people received.

import type { Run } from "../../src/core/shapes/run.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { FACTS_QUERY, factsOf, type SessionFacts } from "./checks/rights.ts";
import type { StoryPlan } from "./plan.ts";
import { Trace, Violation } from "./trace.ts";
import type { Database, Row } from "./world/database.ts";
import { VirtualTime } from "./world/time.ts";

const START_MS = 1_767_225_600_000;

/** A run that a process executes. */
export interface Work {
  readonly process: string;
  readonly run: Run;
  /** Fires when the run has ended or is parked. Then it holds no slot. */
  readonly signal: AbortSignal;
  readonly beganMs: number;
  /** The tools that the run was allowed to use when it began. */
  readonly tools: string;
  /** Number of running model calls: 0 or 1. */
  thinking: number;
  /** Number of running tool calls. */
  calling: number;
}

/** A request with an idempotency key, kept for the whole story. */
export interface KeyedRequest {
  readonly key: string;
  readonly token: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Time at which the request was first sent. */
  readonly sinceMs: number;
  /** The successful answer to the request, as JSON. Undefined if there is none yet. */
  answer: string | undefined;
  /** True if another request used the same key. In that case either of the two may have been executed. */
  contested: boolean;
  /** True if the key was used again, in the same request or in another one. */
  repeated: boolean;
  /** True if no client can receive the answer, because the process or the connection is gone. */
  lost: boolean;
}

/** One part of a delivery that a channel has shown to people. */
export interface Shown {
  readonly deliveryId: string;
  readonly part: number;
  readonly text: string;
  readonly route: string;
}

/** A channel's answer to a delivery attempt. */
export interface Attempt {
  readonly deliveryId: string;
  readonly part: number;
  readonly parts: number;
  readonly outcome: "sent" | "refused" | "retry" | "unknown" | "broke" | "open";
}

/** Returns the `n`th word of a story. The number is decimal, because letters in it could form another word. */
export function wordOf(kind: string, n: number): string {
  return `${kind}${n}x`;
}

export class Story {
  readonly plan: StoryPlan;
  readonly database: Database;
  readonly time = new VirtualTime(START_MS);
  readonly trace = new Trace(() => this.time.now());
  /** True if the last process runs. Models and channels then rarely fail, and models call fewer tools. */
  settling = false;
  /** The first violation of the story, if any. */
  violation: Violation | undefined;

  readonly works = new Set<Work>();
  /** The sessions when they were last read from the database. */
  sessions = new Map<string, SessionFacts>();
  /** Every session that has existed, in its last state. */
  readonly known = new Map<string, SessionFacts>();
  /** For each session, the lane numbers of its turns, in the order in which the turns began. */
  readonly begun = new Map<string, { laneSeq: number; runId: string }[]>();
  /**
   * For each connection, the messages that were accepted on it, each with its position among all requests.
   */
  readonly said = new Map<string, readonly { readonly at: number; readonly runId: string }[]>();
  /** Ids of the runs that a caller has received. */
  readonly promised = new Set<string>();
  readonly keyed = new Map<string, KeyedRequest>();
  /** For each run, the errors that models and the story caused. */
  readonly failures = new Map<string, string[]>();
  /** Sessions and runs that were stopped, reset, deleted or cancelled. */
  readonly stopped = new Set<string>();
  /** Sub-agents whose cancellation was confirmed. */
  readonly cancelled = new Set<string>();
  /** Texts that must be redacted in everything that leaves the gateway. */
  readonly secrets: string[] = [];
  /** Contents of attachments, which no transcript may contain. */
  readonly contents: string[] = [];
  readonly shown: Shown[] = [];
  readonly attempts: Attempt[] = [];
  /**
   * Ids of deliveries that were being sent when their process died, on a channel that cannot detect
   * repetitions.
   */
  readonly doubtful = new Set<string>();
  /** Archived sessions that were restored. */
  readonly restored = new Set<string>();
  /** Routes of the sessions at the start of the story. */
  readonly firstRoutes = new Map<string, string>();
  /** Number of processes that died. */
  deaths = 0;
  /** Deliveries that an operator has requeued. */
  readonly retried = new Set<string>();
  /** How often each command that must not be repeated was executed, by the unique word in the command. */
  readonly commands = new Map<string, number>();
  /** All settings of the story, each with its start time. */
  readonly epochs: { readonly fromMs: number; readonly settings: Settings }[] = [];

  readonly #dice = new Map<string, Dice>();
  #words = 0;
  /** The rows from which `sessions` was made. */
  #facts: readonly Row[] | undefined;
  #ids: Dice;

  constructor(plan: StoryPlan, database: Database) {
    this.plan = plan;
    this.database = database;
    this.#ids = dice(`ids ${plan.seed}`);
  }

  /** Returns separate random numbers for each purpose. */
  luck(purpose: string): Dice {
    const found = this.#dice.get(purpose) ?? dice(`${purpose} ${this.plan.seed}`);
    this.#dice.set(purpose, found);
    return found;
  }

  /** Returns an id without any order, so that no code can rely on an order. */
  uuid(): string {
    const hex = (digits: number): string =>
      this.#ids
        .below(16 ** digits)
        .toString(16)
        .padStart(digits, "0");
    return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(6)}${hex(6)}`;
  }

  /** Returns an id. With `orderedIds`, ids increase with time; ids made at the same time have no order. */
  orderedUuid(): string {
    if (!this.plan.features.orderedIds) return this.uuid();
    const at = Math.floor(this.time.now()).toString(16).padStart(12, "0");
    return `${at.slice(0, 8)}-${at.slice(8)}-7${this.uuid().slice(15)}`;
  }

  /** Returns a unique word. */
  word(kind: string): string {
    this.#words += 1;
    return wordOf(kind, this.#words);
  }

  /** Returns a text that looks like a credential. */
  secret(): string {
    const secret = `sk-live${this.word("k")}0a1b2c3d4e5f6a7b8c9d`;
    this.secrets.push(secret);
    return secret;
  }

  /** Ends the story with a violation, even if the caller catches the exception. */
  wrong(invariant: string, text: string): never {
    this.violation ??= new Violation(invariant, text);
    throw this.violation;
  }

  async look(query: string, ...values: readonly (string | number)[]): Promise<readonly Row[]> {
    return this.database.look(query, ...values);
  }

  /** Reads the sessions from the database again. */
  async refresh(): Promise<Map<string, SessionFacts>> {
    const found = await this.look(FACTS_QUERY);
    if (found === this.#facts) return this.sessions;
    this.#facts = found;
    const rows = found.map(factsOf);
    this.sessions = new Map(rows.map((one) => [one.key, one]));
    for (const one of rows) this.known.set(one.key, one);
    return this.sessions;
  }

  failed(runId: string, error: string): void {
    this.failures.set(runId, [...(this.failures.get(runId) ?? []), error]);
  }

  /** Returns the settings at a time. */
  settingsAt(ms: number): Settings {
    const found = this.epochs.findLast((epoch) => epoch.fromMs <= ms);
    if (found === undefined) throw new Error("no process was there yet");
    return found.settings;
  }
}
