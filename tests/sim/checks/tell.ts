// Plays a story from its seed: processes over one database, each until it stops or dies, then a last process
// that finishes all work. Controls the time in the story.

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { optional } from "../../../src/core/optional.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { sessionRow } from "../../core/rows.ts";
import { askAgain, doSomething, isExpected } from "../deeds.ts";
import { type LifePlan, OWNER_TOKEN, planOf, type StoryPlan } from "../plan.ts";
import { GatewayProcess } from "../process.ts";
import { Story } from "../story.ts";
import { Violation } from "../trace.ts";
import { Client } from "../world/client.ts";
import type { NewDatabase } from "../world/database.ts";
import type { FaultPlan } from "../world/faults.ts";
import { rest } from "../world/time.ts";
import { checkEnd } from "./end/end.ts";
import { StepChecks } from "./step.ts";

/** Maximum number of time steps in a story. More would mean an endless loop. */
const MOMENTS_MAX = 10_000;
const DAY_MS = 24 * 3_600_000;
/** Share of store operations that are delayed, and the maximum delay. Answers to commits are delayed, too. */
const SLOW_SHARE = { operation: 0.04, commit: 0.1, committed: 0.35 };
const SLOW_MS = { operation: 6, commit: 10, committed: 40 };
/** Share of statements and commits that fail because the disk is full. */
const FULL_SHARE = 0.012;
/** Share of commits whose answer is lost. */
const LOST_SHARE = 0.04;
/** Maximum number of operations in a time step. More would mean an endless loop. */
const OPERATIONS_MAX = 20_000;

/** The outcome of a story. */
export interface Telling {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly trace: readonly string[];
  /** A hash of the story: equal for equal stories. */
  readonly mark: string;
  readonly moments: number;
  readonly runs: number;
}

class Teller {
  readonly story: Story;
  readonly #checks: StepChecks;
  readonly #processes: GatewayProcess[] = [];
  readonly #clients: Client[] = [];
  #operations = 0;
  /** The time after which the store loses no answers, until the next process starts. */
  #calmAt = 0;
  count = 0;

  constructor(story: Story) {
    this.story = story;
    this.#checks = new StepChecks(story);
    if (!story.plan.features.clients) return;
    const tokens = [OWNER_TOKEN, ...story.plan.lastSettings.gateway.tokens.map((one) => one.token)];
    const luck = story.luck("clients");
    for (let at = 0; at < 3; at += 1) this.#clients.push(new Client(story, `client${at}`, luck.of(tokens)));
  }

  async tell(): Promise<void> {
    await this.#until(this.#genesis());
    const { lives } = this.story.plan;
    // The database allows this number of processes at once. Each seat plays its processes one after the
    // other.
    const seats = this.story.database.processesMax;
    const work = Array.from({ length: seats }, (_, seat) => this.#liveAll(lives, seat));
    await this.#until(Promise.all(work));
    await this.#settle();
    await checkEnd(this.story);
  }

  /** Runs the checks when everything in this time step has happened. */
  async #come(): Promise<void> {
    const { story } = this;
    await rest(true);
    this.#operations = 0;
    await story.database.idle();
    if (story.violation !== undefined) throw story.violation;
    await this.#checks.check(this.#processes);
    this.count += 1;
    if (this.count > MOMENTS_MAX) story.wrong("I2", "the story comes to no end");
  }

  #fireNext(): void {
    if (!this.story.time.fireNext()) this.story.wrong("I2", "nothing is left to happen, and not all is done");
  }

  /** Fires one timer after the other, until the work is done. */
  async #until(work: Promise<unknown>): Promise<void> {
    let over = false;
    const watched = work.finally(() => {
      over = true;
    });
    watched.catch(() => undefined);
    for (await this.#come(); !over; await this.#come()) this.#fireNext();
    await watched;
  }

  async #genesis(): Promise<void> {
    const { story } = this;
    const { database, plan } = story;
    const nothing = (): void => {};
    const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
    const connection = await database.open(log);
    const luck = story.luck("genesis");
    await connection.store.transaction(async (tx) => {
      for (const key of plan.sessions) {
        const agentId = /^agent:([^:]+)/.exec(key)?.[1] ?? "main";
        const kind = /:(group|channel):/.test(key) ? "group" : key.startsWith("cron:") ? "cron" : "other";
        const route = luck.chance(0.5)
          ? { lastRoute: { channel: luck.of(["sure", "plain"]), to: "ann" } }
          : {};
        const external = key.includes(":mcp:");
        const label = luck.chance(0.4) ? { label: story.word("label") } : {};
        if ("lastRoute" in route && !external)
          story.firstRoutes.set(key, `${route.lastRoute.channel} ${route.lastRoute.to} `);
        const facts = {
          agentId,
          kind,
          external,
          sessionId: story.uuid(),
          createdAt: story.time.now(),
          ...label,
        } as const;
        await insertSession(tx, sessionRow(key, { ...facts, ...(external ? {} : route) }));
      }
    });
    await connection.store.close();
  }

  async #liveAll(lives: readonly LifePlan[], seat: number): Promise<void> {
    for (const [number, life] of lives.entries()) {
      await this.#live(life, `process ${seat}.${number}`);
      await this.story.time.pass(life.downMs);
    }
  }

  #faultsOf(life: LifePlan, name: string): FaultPlan {
    const { slowStore, fullDisk, lostAnswers } = this.story.plan.features;
    const luck = this.story.luck("store");
    // The disk is not full while a process starts, because the process would not start otherwise.
    const isUp = (): boolean => this.#processes.find((one) => one.name === name)?.state !== "starting";
    return {
      delayMs: (place) => (slowStore && luck.chance(SLOW_SHARE[place]) ? luck.below(SLOW_MS[place]) : 0),
      passed: () => this.#noteOperation(),
      isFull: () => fullDisk && luck.chance(FULL_SHARE) && isUp(),
      losesAnswer: () =>
        lostAnswers && luck.chance(LOST_SHARE) && isUp() && this.story.time.now() < this.#calmAt,
      ...optional({ dieAt: life.dieAt }),
    };
  }

  #noFaults(): FaultPlan {
    return {
      delayMs: () => 0,
      passed: () => this.#noteOperation(),
      isFull: () => false,
      losesAnswer: () => false,
    };
  }

  #noteOperation(): void {
    this.#operations += 1;
    if (this.#operations > OPERATIONS_MAX)
      this.story.wrong("I2", "somebody goes round in circles in the store");
  }

  /** Starts one process and plays it until it dies or stops. */
  async #live(life: LifePlan, name: string): Promise<void> {
    const { story } = this;
    const process = new GatewayProcess(story, name, life.settings, this.#faultsOf(life, name));
    this.#processes.push(process);
    const isDead = async (work: Promise<unknown>): Promise<boolean> => {
      await Promise.race([work, process.died]);
      return process.state === "dead";
    };
    this.#loseKeys();
    if (await isDead(process.start())) return;
    const luck = story.luck("lives");
    this.#calmAt = story.time.now() + life.stopAfterMs;
    for (const client of this.#clients) if (luck.chance(0.8)) client.connect(process);
    const during = (act: () => void): void => {
      story.time.after(luck.below(life.stopAfterMs), () => process.state === "up" && act());
    };
    for (let deed = 0; deed < life.deeds; deed += 1)
      during(() => void doSomething(story, process, this.#clients));
    if (life.dieAfterMs !== undefined)
      story.time.after(life.dieAfterMs, () => process.alive() && process.die());
    if (await isDead(story.time.pass(life.stopAfterMs + life.calmMs))) return;
    if (process.paused) process.resume();
    if (await isDead(process.stop(life.graceMs))) return;
    for (const client of this.#clients) client.drop();
  }

  /** Records that callers of a dead process get no answer. */
  #loseKeys(): void {
    for (const request of this.story.keyed.values()) if (request.answer === undefined) request.lost = true;
  }

  /** Plays the last process without faults, until all work is finished. */
  async #settle(): Promise<void> {
    const { story } = this;
    story.settling = true;
    const process = new GatewayProcess(story, "the last process", story.plan.lastSettings, this.#noFaults());
    this.#processes.push(process);
    this.#loseKeys();
    await this.#until(process.start());
    for (const client of this.#clients) client.connect(process);
    await this.#until(story.time.pass(1));
    for (const request of story.keyed.values())
      if (request.lost) askAgain(story, process, this.#clients, request);
    for (await this.#come(); !(await this.#isQuiet()); await this.#come()) this.#fireNext();
    const end = story.time.now() + DAY_MS;
    for (let at = story.time.nextAt(); at !== undefined && at <= end; at = story.time.nextAt()) {
      this.#fireNext();
      await this.#come();
    }
    const { slots } = await process.engine.load();
    if (slots.taken > 0) story.wrong("I6", `all is done, and ${slots.taken} slots are taken`);
    for (const client of this.#clients) client.drop();
    await this.#until(process.stop(0));
  }

  async #isQuiet(): Promise<boolean> {
    const { story } = this;
    if (story.works.size > 0) return false;
    const left = await story.look(`select 1 as one from runs where ended_at is null
      union all select 1 from flows where state = 'open' union all select 1 from deliveries where state = 'pending'`);
    return left.length === 0;
  }
}

/** The story that is being played. */
let current: Story | undefined;

/** Reports an unhandled rejection as a violation, because it would end a real process. */
export function noteUnhandled(error: unknown): void {
  const isDying = current !== undefined && current.deaths > 0 && /database is not open/.test(String(error));
  if (current === undefined || isExpected(error) || isDying) return;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  current.violation ??= new Violation("unhandled", text);
}

function planIn(seed: number, dir: string): StoryPlan {
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  return planOf(seed, join(dir, "store"), workspace);
}

/** Plays the story of a seed in a new empty folder. */
export async function tell(seed: number, newDatabase: NewDatabase, parent: string): Promise<Telling> {
  const dir = join(parent, `story-${seed}`);
  const plan = planIn(seed, dir);
  const database = await newDatabase(plan.lastSettings.store.dir);
  const story = new Story(plan, database);
  const teller = new Teller(story);
  current = story;
  let violation: Violation | undefined;
  let runs = 0;
  try {
    await teller.tell();
    runs = (await story.look("select run_id from runs")).length;
  } catch (error) {
    violation =
      error instanceof Violation ? error : new Violation("story", (error as Error).stack ?? String(error));
  }
  await database.remove();
  rmSync(dir, { recursive: true, force: true });
  return { seed, violation, trace: story.trace.lines, mark: story.trace.mark(), moments: teller.count, runs };
}
