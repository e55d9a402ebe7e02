// The state of a story outside of the database: which process executes which run, accepted requests, planted
// secrets, and received texts.

import type { Run } from "../../src/core/shapes/run.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { FACTS_QUERY, factsOf, type SessionFacts } from "./checks/rights.ts";
import type { StoryPlan } from "./plan.ts";
import { Trace, Violation } from "./trace.ts";
import type { Database, Row } from "./world/database.ts";
import { VirtualTime } from "./world/time.ts";

const START_MS = 1_767_225_600_000;

/** A run that executes in a process. */
export interface Work {
  readonly process: string;
  readonly run: Run;
  readonly beganMs: number;
  /** The tools that it had a right to when it began. */
  readonly tools: string;
  /** Number of model calls under way: 0 or 1. */
  thinking: number;
  /** Number of tool calls under way. */
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
  /** Its successful answer, as JSON; undefined: none yet. */
  answer: string | undefined;
  /** Another request used the same key, and may have been the first. */
  contested: boolean;
  /** No client waits for this answer: the client's process or connection is gone. */
  lost: boolean;
}

/** One part of a delivery that a channel has shown to people. */
export interface Shown {
  readonly deliveryId: string;
  readonly part: number;
  readonly text: string;
  readonly route: string;
}

/** A channel's answer to an attempt. */
export interface Attempt {
  readonly deliveryId: string;
  readonly part: number;
  readonly parts: number;
  readonly outcome: "sent" | "refused" | "retry" | "unknown" | "broke" | "open";
}

export class Story {
  readonly plan: StoryPlan;
  readonly database: Database;
  readonly time = new VirtualTime(START_MS);
  readonly trace = new Trace(() => this.time.now());
  /** The last process runs: all delays are short. */
  settling = false;
  /** The first violation. */
  violation: Violation | undefined;

  readonly works = new Set<Work>();
  /** The sessions as last read. */
  sessions = new Map<string, SessionFacts>();
  /** Every session that ever existed, in its last state. */
  readonly known = new Map<string, SessionFacts>();
  /** By session: lane numbers in the order in which turns began. */
  readonly begun = new Map<string, { laneSeq: number; runId: string }[]>();
  /** By connection: messages accepted on it, each with its position among all requests. */
  readonly said = new Map<string, readonly { readonly at: number; readonly runId: string }[]>();
  /** Run ids that were returned to a caller. */
  readonly promised = new Set<string>();
  readonly keyed = new Map<string, KeyedRequest>();
  /** By run: errors that models and the story itself caused. */
  readonly failures = new Map<string, string[]>();
  /** Sessions and runs that were stopped, reset, deleted or cancelled. */
  readonly stopped = new Set<string>();
  /** Sub-agents whose cancellation was confirmed. */
  readonly cancelled = new Set<string>();
  /** Texts that a redacted interface must not show. */
  readonly secrets: string[] = [];
  /** Contents of attachments, which must be in no transcript. */
  readonly contents: string[] = [];
  readonly shown: Shown[] = [];
  readonly attempts: Attempt[] = [];
  /** Deliveries whose attempt was open when their process died, on a channel that can't detect repeats. */
  readonly doubtful = new Set<string>();
  /** Archived sessions that were restored. */
  readonly restored = new Set<string>();
  /** Where sessions were read before the story began. */
  readonly firstRoutes = new Map<string, string>();
  /** Processes that died. */
  deaths = 0;
  /** Deliveries that an operator put back into the queue. */
  readonly retried = new Set<string>();
  /** Number of executions of each command that must not be repeated, by its word. */
  readonly commands = new Map<string, number>();
  /** Settings, each with its start time. */
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

  /** Separate dice for each purpose. */
  luck(purpose: string): Dice {
    const found = this.#dice.get(purpose) ?? dice(`${purpose} ${this.plan.seed}`);
    this.#dice.set(purpose, found);
    return found;
  }

  /** Makes ids without an order, so that no code can rely on one. */
  uuid(): string {
    const hex = (digits: number): string =>
      this.#ids
        .below(16 ** digits)
        .toString(16)
        .padStart(digits, "0");
    return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(6)}${hex(6)}`;
  }

  /** With `orderedIds` rises with time, like that of a real process. Ids of one time have no order. */
  orderedUuid(): string {
    if (!this.plan.features.orderedIds) return this.uuid();
    const at = Math.floor(this.time.now()).toString(16).padStart(12, "0");
    return `${at.slice(0, 8)}-${at.slice(8)}-7${this.uuid().slice(15)}`;
  }

  /** Returns a unique word. */
  word(kind: string): string {
    this.#words += 1;
    return `${kind}${this.#words.toString(36)}x`;
  }

  /** Returns a text that looks like a credential. */
  secret(): string {
    const secret = `sk-live${this.word("k")}0a1b2c3d4e5f6a7b8c9d`;
    this.secrets.push(secret);
    return secret;
  }

  /** Ends the story, even if the caller catches the throw. */
  wrong(invariant: string, text: string): never {
    this.violation ??= new Violation(invariant, text);
    throw this.violation;
  }

  async look(query: string, ...values: readonly (string | number)[]): Promise<readonly Row[]> {
    return this.database.look(query, ...values);
  }

  /** Reads the sessions again. */
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
