// Stories of several processes over one store. They check which process may work, which one counts as dead,
// and that all work is done. The engines and the embedded store are real, with shared commits. Hints,
// database connections and time are simulated. Ids increase with time, as in a real process.
// CS1: a process that begins a model call, a tool call or a write got the answer to its last heartbeat less
//      than 2.5 s ago.
// CS2: a living process counts as dead only if the database answered others but not it for a whole lease.
// CS3: a run is claimed and starts in a process whose last heartbeat is at most half a lease old.
// CS4: a process that was declared dead has stopped its runs before its next heartbeat.
// CS5: at the end each accepted run has succeeded, its message and its answer are stored once, in lane
//      order.
// CS6: a process starts only runs that it holds.

import { AsyncLocalStorage } from "node:async_hooks";
import { join } from "node:path";
import type { Run } from "../../../src/core/shapes/run.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import type { EndFacts } from "../../../src/engine/run/finish.ts";
import { LostLane } from "../../../src/engine/run/finish.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { LEASE_MS } from "../../../src/store/queries/processes.ts";
import { heldRun } from "../../../src/store/queries/runs/claims.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { readRun } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { SharedStore, Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import type { World } from "../../../src/world.ts";
import { sessionRow } from "../../core/rows.ts";
import { type Dice, dice } from "../../kit/dice.ts";
import { assistantText } from "../../kit/engine/engine.ts";
import { type FakeWire, fakeWire } from "../../kit/engine/fake-shared.ts";
import { type MortalProcess, mortalProcess } from "../../kit/engine/mortal-store.ts";
import { NO_SUCCESSORS } from "../../kit/engine/no-successors.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import type { Telling } from "../checks/tell.ts";
import { Trace, Violation } from "../trace.ts";
import { rest, VirtualTime } from "../world/time.ts";

const START_MS = 1_767_225_600_000;
const KEYS = ["one", "two", "three", "four"].map((name) => `agent:main:chat:${name}`);
const PROCESSES = 3;
/** Duration of the faults, and the maximum time afterwards until all work is done. */
const TROUBLE_MS = 25_000;
const PATIENCE_MS = 60_000;
const AUTHORITY_MS = LEASE_MS - 500;
const NOTICED_MS = 2_000;

class Cluster {
  readonly time = new VirtualTime(START_MS);
  readonly trace = new Trace(() => this.time.now());
  readonly luck: Dice;
  readonly wire: FakeWire = fakeWire();
  readonly accepted = new Set<string>();
  /** Difference between the database's clock and the story's time. */
  jumpMs = 0;
  /** The time before which the database answers no process. */
  upSince = 0;
  isUp = true;
  #ids = 0;
  violation: Violation | undefined;

  constructor(seed: number) {
    this.luck = dice(`cluster ${seed}`);
  }

  wrong(invariant: string, text: string): never {
    this.violation ??= new Violation(invariant, text);
    throw this.violation;
  }

  /** Returns an id that increases with time, as in a real process. */
  id(): string {
    this.#ids += 1;
    const at = this.time.now().toString(16).padStart(12, "0");
    return `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-${this.#ids.toString(16).padStart(12, "0")}`;
  }
}

type Link = "pass" | "fail" | "hang";

/** A process of the story, with the facts about it that the checks use. */
class Member {
  readonly name: string;
  readonly mortal: MortalProcess;
  readonly engine: Engine;
  readonly handles = new Set<LaneHandle>();
  state: "up" | "paused" | "dead" = "up";
  /**
   * The state of its heartbeat connection. If `isCutOff` is true, it is also the state of the connection
   * for transactions.
   */
  link: Link = "pass";
  isCutOff = false;
  /** The time at which its last heartbeat that got an answer was sent. */
  sentAt = Number.NEGATIVE_INFINITY;
  /**
   * The time at which a heartbeat first failed after the last one that was answered. The process notices a
   * failure some steps after the story, so work that begins at the same time is allowed.
   */
  failedAt = Number.POSITIVE_INFINITY;
  /** The time until which a fault prevents its heartbeats. */
  troubledUntil = Number.NEGATIVE_INFINITY;
  /** Resolves when the answer to a commit arrives. */
  afterCommit: () => Promise<void> = async () => {};
  /** The time at which it last got the answer to a transaction that was delayed. */
  delayedUntil = Number.NEGATIVE_INFINITY;
  /** Whether another process has deleted its row. */
  isCondemned = false;
  readonly #cluster: Cluster;
  readonly #disk: Store;
  #waiting: (() => void)[] = [];
  /** The id of the run for which the current transaction writes. */
  readonly #writing = new AsyncLocalStorage<string>();

  constructor(cluster: Cluster, name: string, disk: Store) {
    this.#cluster = cluster;
    this.#disk = disk;
    this.name = name;
    const world = this.#worldOf();
    const joined = cluster.wire.join(disk, world.clock);
    if (joined.shared === undefined) throw new Error("a cluster's store is shared");
    const transaction: Store["transaction"] = async (work) => {
      if (this.isCutOff) await this.#pass();
      const value = await joined.transaction(work);
      await this.afterCommit();
      return value;
    };
    this.mortal = mortalProcess({ ...joined, transaction, shared: this.#linked(joined.shared) }, world);
    const { store } = this.mortal;
    this.engine = new Engine({
      store: {
        ...store,
        transaction: async (work) => {
          const runId = this.#writing.getStore();
          if (runId !== undefined) this.#checkAuthority("a write", runId);
          const sentAt = cluster.time.now();
          const value = await store.transaction(work);
          if (cluster.time.now() > sentAt) this.delayedUntil = cluster.time.now();
          return value;
        },
      },
      world: this.mortal.world,
      successors: NO_SUCCESSORS,
      settings: { queueMax: 50, maxHops: 8, maxChainRuns: 100, maxConcurrent: 4 },
      executor: { execute: (handle) => this.#execute(handle) },
    });
    this.engine.bus.subscribe((event, here) => {
      // A delayed claim was made on a newer lease. The executor checks whether its run starts nevertheless.
      const isDelayed = this.delayedUntil === cluster.time.now();
      if (event.kind === "run_started" && here && !isDelayed) this.#checkStart(event.runId);
    });
  }

  setLink(link: Link): void {
    this.link = link;
    this.troubledUntil = this.#cluster.time.now();
    if (link === "pass") this.isCutOff = false;
    if (link === "hang") return;
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  #worldOf(): World {
    const cluster = this.#cluster;
    const { time, trace, luck } = cluster;
    const note = (level: string) => (fields: object, text: string) => {
      const { err } = fields as { err?: unknown };
      trace.add(`${this.name} ${level}: ${text} ${err instanceof Error ? err.message : ""}`);
      const isMade = err === undefined || err instanceof StoreProblem || err instanceof LostLane;
      if (level === "error" && !isMade) cluster.violation ??= new Violation("log", `${text}: ${String(err)}`);
    };
    return {
      clock: {
        now: () => Math.floor(time.now()) + cluster.jumpMs,
        monotonic: () => time.now() - START_MS,
        at: (atMs, fire) => time.at(atMs - cluster.jumpMs, fire),
        after: (ms, fire) => time.at(time.now() + ms, fire),
      },
      ids: { uuid: () => cluster.id(), orderedUuid: () => cluster.id() },
      random: () => luck.below(1_000) / 1_000,
      redactor: plainRedactor,
      log: { debug: () => {}, info: () => {}, warn: note("warn"), error: note("error") },
    };
  }

  /** Wraps the database so that faults affect this process's heartbeats and clock reads. */
  #linked(shared: SharedStore): SharedStore {
    const { time } = this.#cluster;
    return {
      ...shared,
      // Clock reads have their own connection, which sometimes hangs longer than a lease.
      isDeaf: () => false,
      syncClock: () => (this.#cluster.luck.chance(0.1) ? time.pass(2 * LEASE_MS) : Promise.resolve()),
      urgently: async (work) => {
        const sentAt = time.now();
        try {
          await this.#pass();
          const value = await shared.urgently(work);
          this.#beaten(sentAt);
          return value;
        } catch (error) {
          this.failedAt = Math.min(this.failedAt, time.now());
          throw error;
        }
      },
    };
  }

  async #pass(): Promise<void> {
    if (this.link === "hang") await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.link === "fail") throw new StoreProblem("unreachable", "the store of the story");
  }

  #beaten(sentAt: number): void {
    this.sentAt = sentAt;
    this.failedAt = Number.POSITIVE_INFINITY;
    if (!this.isCondemned) return;
    // CS4: this heartbeat told the process that it was declared dead, so its runs must have stopped.
    const before = [...this.handles];
    this.#cluster.time.after(5, () => {
      const left = before.find((handle) => !handle.signal.aborted && this.handles.has(handle));
      if (left !== undefined && this.state === "up")
        this.#cluster.violation ??= new Violation("CS4", `${this.name} goes on with ${left.run.runId}`);
    });
  }

  #checkStart(runId: string): void {
    const cluster = this.#cluster;
    const ageMs = cluster.time.now() - this.sentAt;
    if (ageMs > LEASE_MS / 2 || this.failedAt < cluster.time.now())
      cluster.violation ??= new Violation(
        "CS3",
        `${this.name} starts ${runId}: its last beat is ${ageMs} ms old`,
      );
  }

  /** Checks CS6 when the executor begins. */
  async #checkHeld({ runId, attempt }: Run): Promise<void> {
    const fence = { runId, attempt, owner: this.engine.processId };
    if ((await heldRun(this.#disk.db, fence).select("run_id").executeTakeFirst()) === undefined)
      this.#cluster.wrong(
        "CS6",
        `${this.name} starts attempt ${attempt} of ${runId}, which it does not hold`,
      );
  }

  /** Checks CS1 when a process begins work that must not happen twice. */
  #checkAuthority(what: string, runId: string): void {
    const cluster = this.#cluster;
    const ageMs = cluster.time.now() - this.sentAt;
    if (ageMs >= AUTHORITY_MS || this.failedAt < cluster.time.now())
      cluster.wrong("CS1", `${this.name} begins ${what} of ${runId}, ${ageMs} ms after its last beat`);
  }

  /** Stores the result of a step, unless an earlier attempt has stored it. */
  async #note({ run, append }: LaneHandle, step: number): Promise<void> {
    const id = `step${step}-${run.runId}`;
    const stored = await readRun(this.mortal.store.db, run.runId);
    if (stored.some((one) => one.id === id)) return;
    const facts = { role: "toolResult", toolCallId: id, toolName: "step", isError: false } as const;
    const entry = {
      ...facts,
      id,
      content: [{ type: "text" as const, text: "done" }],
      timestamp: run.acceptedAt,
    };
    await this.#writing.run(run.runId, () => append(entry));
  }

  /** Plays a turn: model call, tool call, result and answer, each after a delay. */
  async #execute(handle: LaneHandle): Promise<EndFacts> {
    const { time, luck } = this.#cluster;
    this.#checkStart(handle.run.runId);
    await this.#checkHeld(handle.run);
    this.handles.add(handle);
    const lasts = (): Promise<void> => time.pass(luck.below(1_500));
    try {
      const { runId, attempt } = handle.run;
      for (let step = 0; step < 2; step += 1) {
        await handle.confirm();
        this.#checkAuthority("a model call", runId);
        await lasts();
        handle.signal.throwIfAborted();
        await handle.duringCall(async () => {
          this.#checkAuthority("a tool call", runId);
          await lasts();
        });
        handle.signal.throwIfAborted();
        await this.#note(handle, step);
      }
      const said = (await readRun(this.mortal.store.db, runId)).some((one) => one.role === "assistant");
      if (!said) await handle.append(assistantText(`answer-${runId}-${attempt}`, `answer of ${runId}`));
      return { state: "ok", reply: `answer of ${runId}` };
    } finally {
      this.handles.delete(handle);
    }
  }
}

/** Cuts a process off between its next commit and the answer. */
function cutOffAtCommit(cluster: Cluster, member: Member, lasts: number): void {
  const { time, luck } = cluster;
  member.afterCommit = async () => {
    member.afterCommit = async () => {};
    if (!cluster.isUp) return;
    member.setLink("hang");
    member.isCutOff = true;
    time.after(lasts, () => cluster.isUp && member.setLink("pass"));
    // The heartbeats have their own connection, which may pass sooner.
    await time.pass(lasts + luck.below(2_000));
  };
}

/** Starts one random fault. */
function trouble(cluster: Cluster, members: readonly Member[]): void {
  const { luck, time, trace } = cluster;
  const living = members.filter(({ state }) => state === "up");
  const member = luck.of(living.length > 0 ? living : members);
  const later = (ms: number, action: () => void): void => void time.after(ms, action);
  const lasts = 500 + luck.below(7_000);
  switch (luck.below(8)) {
    case 0:
      if (living.length < PROCESSES || !luck.chance(0.3)) return;
      trace.add(`${member.name} dies`);
      member.state = "dead";
      member.mortal.die();
      return;
    case 1:
      if (member.state !== "up") return;
      trace.add(`${member.name} stands still for ${lasts} ms`);
      member.state = "paused";
      member.mortal.pause();
      later(lasts, () => {
        trace.add(`${member.name} goes on`);
        member.state = "up";
        member.setLink(member.link);
        member.mortal.goOn();
      });
      return;
    case 2:
    case 3: {
      const link = luck.of(["fail", "hang"] as const);
      trace.add(`the beats of ${member.name} ${link} for ${lasts} ms`);
      member.setLink(link);
      later(lasts, () => cluster.isUp && member.setLink("pass"));
      return;
    }
    case 4: {
      if (!cluster.isUp) return;
      const link = luck.of(["fail", "hang"] as const);
      trace.add(`the database is away for ${lasts} ms: ${link}`);
      cluster.isUp = false;
      for (const one of members) {
        one.setLink(link);
        one.isCutOff = true;
      }
      later(lasts, () => {
        cluster.isUp = true;
        // Processes do not notice a shorter outage between two heartbeats.
        if (lasts >= NOTICED_MS) cluster.upSince = time.now();
        // After the outage, some processes reach the database before others.
        for (const one of members) later(luck.below(2_000), () => cluster.isUp && one.setLink("pass"));
      });
      return;
    }
    case 5:
      trace.add(`${member.name} is cut off for ${lasts} ms before the answer to its next commit`);
      cutOffAtCommit(cluster, member, lasts);
      return;
    case 6:
      cluster.jumpMs += luck.of([7_200_000, 60_000, 5_000]);
      trace.add(`the database's clock jumps to +${cluster.jumpMs} ms`);
      return;
    default:
      trace.add(`${member.name} loses the answer to its next commit`);
      member.mortal.loseNextAnswer();
  }
}

/** CS2: checks each row that was deleted. */
async function checkRows(cluster: Cluster, members: readonly Member[], disk: Store): Promise<void> {
  const rows = await disk.db.selectFrom("processes").select("process_id").execute();
  const there = new Set(rows.map((row) => row.process_id));
  const now = cluster.time.now();
  for (const member of members) {
    const hasRow = there.has(member.engine.processId);
    if (hasRow) member.isCondemned = false;
    if (hasRow || member.isCondemned || member.sentAt < 0) continue;
    member.isCondemned = true;
    cluster.trace.add(`${member.name} is taken for dead`);
    const silentMs = now - member.sentAt;
    if (silentMs < LEASE_MS)
      cluster.wrong("CS2", `${member.name} is taken for dead ${silentMs} ms after its last beat`);
    if (member.state === "up" && (!cluster.isUp || now - cluster.upSince < LEASE_MS))
      cluster.wrong("CS2", `${member.name} is taken for dead, and the database has not answered for a lease`);
    if (member.state === "up" && member.link === "pass" && now - member.troubledUntil >= LEASE_MS)
      cluster.wrong("CS2", `${member.name} is taken for dead, and nothing kept it from its beats`);
  }
}

/**
 * Sends a message repeatedly until a process has accepted it. The id is the same each time, so there is
 * only one run.
 */
async function tellForSure(cluster: Cluster, members: readonly Member[], runId: string): Promise<void> {
  const sessionKey = cluster.luck.of(KEYS);
  for (;;) {
    const living = members.filter(({ state }) => state === "up");
    const member = cluster.luck.of(living.length > 0 ? living : members);
    const asked = member.engine.accept({ sessionKey, runId, input: { text: `question ${runId}` } });
    const answer = await Promise.race([asked.catch(() => undefined), cluster.time.pass(3_000)]);
    if (answer?.ok === true) {
      cluster.accepted.add(runId);
      return;
    }
    await cluster.time.pass(200);
  }
}

/** CS5. */
async function checkEnd(cluster: Cluster, disk: Store): Promise<void> {
  const runs = await disk.db.selectFrom("runs").selectAll().orderBy("lane_seq").execute();
  for (const runId of cluster.accepted) {
    const run = runs.find((one) => one.run_id === runId);
    // A run that crashed in three processes is not retried.
    if (run?.state === "error" && run.crashes === 3) continue;
    if (run?.state !== "ok")
      cluster.wrong("CS5", `run ${runId} is ${run?.state ?? "gone"} ${run?.error ?? ""}`);
    const roles = (await readRun(disk.db, runId)).map((one) => one.role);
    if (roles.join() !== "user,toolResult,toolResult,assistant")
      cluster.wrong("CS5", `run ${runId} has stored ${roles.join()}`);
  }
  for (const lane of Map.groupBy(runs, (run) => run.session_key).values()) {
    const starts = lane.map((run) => Number(run.started_at));
    if (starts.some((at, index) => at < (starts[index - 1] ?? 0)))
      cluster.wrong("CS5", `the runs of ${lane[0]?.session_key} began out of order`);
  }
}

class Teller {
  readonly cluster: Cluster;
  readonly members: readonly Member[];
  readonly #disk: Store;
  moments = 0;
  #told = 0;

  constructor(cluster: Cluster, disk: Store) {
    this.cluster = cluster;
    this.#disk = disk;
    this.members = Array.from({ length: PROCESSES }, (_, at) => new Member(cluster, `p${at}`, disk));
  }

  async tell(): Promise<void> {
    const { cluster, members } = this;
    const { time, luck } = cluster;
    const disk = this.#disk;
    await this.#drive(
      disk.transaction(async (tx) => {
        for (const key of KEYS)
          await insertSession(tx, sessionRow(key, { sessionId: `of ${key}`, agentId: "main" }));
      }),
    );
    for (const member of members) await this.#drive(member.engine.start());
    const endMs = time.now() + TROUBLE_MS;
    const runs = 6 + luck.below(10);
    for (let at = 0; at < runs; at += 1)
      time.after(luck.below(TROUBLE_MS), () => void this.#accept(`run${at}`));
    for (let at = luck.below(8) + 2; at > 0; at -= 1)
      time.after(luck.below(TROUBLE_MS), () => trouble(cluster, members));
    while (time.now() < endMs + 8_000) await this.#step();
    for (const member of members)
      if (member.state !== "dead" && member.link !== "pass") member.setLink("pass");
    while (time.now() < endMs + PATIENCE_MS && !(await this.#isOver(runs))) await this.#step();
    if (this.#told < runs) cluster.wrong("CS5", `${runs - this.#told} messages are not accepted`);
    await checkEnd(cluster, disk);
  }

  async #accept(runId: string): Promise<void> {
    await tellForSure(this.cluster, this.members, runId);
    this.#told += 1;
  }

  async #isOver(runs: number): Promise<boolean> {
    if (this.#told < runs) return false;
    const open = this.#disk.db.selectFrom("runs").select("run_id").where("ended_at", "is", null);
    return (await open.executeTakeFirst()) === undefined;
  }

  /** Advances time until the promise has settled. */
  async #drive(work: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    work.then(over, over);
    await rest(false);
    while (!isOver) await this.#step();
    await work;
  }

  async #step(): Promise<void> {
    this.moments += 1;
    if (!this.cluster.time.fireNext()) throw new Error("time stands still");
    await rest(false);
    await rest(false);
    await checkRows(this.cluster, this.members, this.#disk);
    if (this.cluster.violation !== undefined) throw this.cluster.violation;
  }
}

/** Plays the story of a seed. `parent`: the folder in which the story makes its files. */
export async function tellCluster(seed: number, parent: string): Promise<Telling> {
  const cluster = new Cluster(seed);
  const { time } = cluster;
  const world = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const dir = join(parent, `cluster-${seed}`);
  const { readWorker: _, ...disk } = await openSqlite({
    ...{ dir, durability: "normal", log: world },
    // Transactions that begin at the same time share a commit.
    gather: () => time.pass(0),
  });
  const teller = new Teller(cluster, disk);
  try {
    await teller.tell();
  } catch (error) {
    cluster.violation ??= new Violation(
      "story",
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    );
  }
  for (const member of teller.members) member.mortal.die();
  await Promise.race([disk.close(), rest(false).then(() => rest(false))]);
  const { violation, trace } = cluster;
  return {
    seed,
    violation,
    trace: trace.lines,
    mark: trace.mark(),
    moments: teller.moments,
    runs: cluster.accepted.size,
  };
}
