// Runs a recorded chain again in an empty world: a store in memory, a clock that jumps, ids of its own. It
// reaches neither the store nor the channels of a gateway.

import { join } from "node:path";
import { keyRulesOf } from "../../../access/access.ts";
import { engineSettings } from "../../../app/engine-settings.ts";
import { recorderOfRuns } from "../../../app/records.ts";
import { optional } from "../../../core/optional.ts";
import { filterMarks } from "../../../core/rules/labels/labels.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { type Entry, type UserMessage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import type { ChainRecord, FirstMessage } from "../../../core/shapes/record/chain.ts";
import type { Variation } from "../../../core/shapes/record/variation.ts";
import { isEnded, type Run } from "../../../core/shapes/run.ts";
import { mainKeyOf } from "../../../core/shapes/session-key.ts";
import { liveSettings } from "../../../core/shapes/settings/live.ts";
import type { Settings } from "../../../core/shapes/settings/settings.ts";
import { Redactor } from "../../../core/text/redact/redact.ts";
import { Engine } from "../../../engine/engine.ts";
import { createExecutor } from "../../../execute.ts";
import { ensureMainSessions } from "../../../flows/session/lifecycle.ts";
import { createSuccessors } from "../../../flows/successors.ts";
import { getChain } from "../../../store/queries/chains/chains.ts";
import { deliveriesOf, readChainRecord } from "../../../store/queries/chains/record.ts";
import { addLabels, labelsOfChain } from "../../../store/queries/labels.ts";
import { RUNS } from "../../../store/queries/runs/runs.ts";
import { insertSession } from "../../../store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../store/queries/transcripts/append.ts";
import { ENTRY_COLUMNS, readEntry } from "../../../store/queries/transcripts/stored-entry.ts";
import type { Store } from "../../../store/sql.ts";
import { openMemoryStore } from "../../../store/sqlite/memory.ts";
import { type Clock, otherWorkDone, SILENT, silenced, type World } from "../../../world.ts";
import { diffLabels } from "../chain-diff.ts";
import type { ReplayOutcome } from "../contract.ts";
import { ReplayClock } from "./clock.ts";
import { differencesOf, type PlayedRun } from "./compare.ts";
import type { LiveParts } from "./live.ts";
import { compareAcceptance } from "./order.ts";
import { Player } from "./player.ts";
import { isOrigin, Script, type ScriptedRun } from "./script.ts";
import { changedSettings, checkVariation, modelFor } from "./variation.ts";

export interface Replayed extends Omit<ReplayOutcome, "varied"> {
  readonly chainId: string;
  readonly varied?: Omit<NonNullable<ReplayOutcome["varied"]>, "diff"> & { readonly record: ChainRecord };
}

/** The changes of a replay, and its way to models and tools. */
export interface Vary {
  readonly variation: Variation;
  /** Settings of the runs whose inputs are not recorded. Default: a record with such runs is refused. */
  readonly settings?: Settings;
  readonly parts: LiveParts & {
    /** The real clock. */
    readonly clock: Clock;
    readonly redactor: Redactor;
  };
}

/** Called after each event of the record, with the number of events so far and of all. */
export type Progress = (done: number, total: number) => void;

/** An event of the record, in the order in which the replay follows them. */
interface ScriptEvent {
  readonly at: number;
  readonly rank: number;
  readonly act: () => void | Promise<void>;
}

/** Number of runs at the same time. The record says when each begins, so slots do not limit them. */
const UNLIMITED = 1_000_000;
/** The record says which calls an owner allowed. */
const ASKS_NOBODY = "off";
/** Results are cut once, in the record. */
const RESULT_MAX_BYTES = Number.MAX_SAFE_INTEGER;

const withoutLimits = (settings: Settings): Settings => ({
  ...settings,
  labels: { ...settings.labels, mode: ASKS_NOBODY },
  agents: settings.agents.map(({ budget: _, labels: __, ...agent }) => ({
    ...agent,
    maxToolResultBytes: RESULT_MAX_BYTES,
  })),
});

class Replay {
  readonly #script: Script;
  readonly #clock: ReplayClock;
  readonly #player: Player;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #live: ReturnType<typeof liveSettings>;
  /** The recorded settings of the newest run. */
  #current: Settings | undefined;
  readonly #world: World;
  readonly #vary: Vary | undefined;

  constructor(script: Script, first: Settings, vary?: Vary) {
    this.#script = script;
    this.#vary = vary;
    this.#clock = new ReplayClock(script.runs[0]?.run.acceptedAt ?? 0);
    this.#player = new Player(script, {
      now: () => this.#clock.now(),
      // Its calls do not run, so nothing else notes what they brought.
      mark: ({ runId, chainId, sessionKey: key, sessionId }, callId, labels) =>
        this.#engine.commit(({ tx, now: at }) =>
          addLabels(tx, { key, sessionId, chainId }, labels, { at, runId, callId }),
        ),
      ...optional({ vary }),
    });
    this.#live = liveSettings(this.#adaptSettings(first));
    const { settings } = this.#live;
    const { make } = this.#player.ids;
    this.#world = {
      clock: this.#clock,
      ids: { uuid: make, orderedUuid: make },
      random: () => 0.5,
      redactor: vary?.parts.redactor ?? new Redactor([]),
      log: SILENT,
    };
    const path = (sessionId: string): string | undefined =>
      first.store.postgresUrl === undefined ? join(first.store.dir, `${sessionId}.jsonl`) : undefined;
    this.#store = openMemoryStore(path);
    this.#engine = this.#engineOn(settings);
  }

  /** Returns the settings with which runs work in the replay. */
  #adaptSettings(settings: Settings): Settings {
    const vary = this.#vary;
    if (vary === undefined) return withoutLimits(settings);
    const changed = changedSettings(settings, vary.variation, vary.parts.providers);
    return withoutLimits(changed.ok ? changed.value : settings);
  }

  #engineOn(settings: Settings): Engine {
    const player = this.#player;
    const version = this.#script.record.program;
    const recorder = this.#vary && recorderOfRuns({ version, world: this.#world });
    const executor = createExecutor({
      ...{ settings, store: this.#store, world: this.#world, port: player.port },
      ...optional({ recorder }),
      // Tools of agents with a sandbox never run here (variation.ts).
      sandboxFor: async () => ok(undefined),
      hooks: player,
      engine: () => this.#engine,
    });
    const flows = createSuccessors({
      settings,
      transcriptPath: (sessionId) => this.#store.transcriptPath(sessionId),
    });
    const limits = engineSettings(settings);
    const own = Object.defineProperties(Object.create(limits) as typeof limits, {
      maxConcurrent: { value: UNLIMITED },
      dailyBudgets: { value: {} },
      maxSubagents: { value: UNLIMITED },
    });
    return new Engine({
      store: this.#store,
      world: this.#world,
      successors: flows,
      settings: own,
      isHeldBack: (run) => {
        const one = this.#player.match(run);
        // A run that was stopped in its queue has no time of its start, so it never starts.
        return one !== undefined && !this.#player.gates.isOpen(`start ${one.index}`);
      },
      refusalOf: (run) => player.refusalOf(run),
      limitAt: (run) => player.limitAt(run),
      executor: {
        execute: async ({ budget, ...handle }) => {
          const { run, signal } = handle;
          player.begins(run);
          const append = async (entry: Entry): Promise<Entry> => {
            await player.beforeAppend(run, entry, signal);
            return handle.append(entry);
          };
          const limited = budget && this.#vary && { budget: player.budgetOf(run, budget) };
          const facts = await executor.execute({ ...handle, ...limited, append });
          await player.beforeEnd(run, signal);
          return facts;
        },
      },
    });
  }

  /** Creates the sessions that existed before the chain, with their contexts. */
  async #seed(): Promise<void> {
    const { sessions, flows, runs } = this.#script.record;
    const made = new Set(flows.map(({ flowId }) => flowId));
    const runIds = new Set(runs.map(({ runId }) => runId));
    const [{ acceptedAt: beganAt = 0 } = {}] = runs;
    const { redactor } = this.#world;
    await this.#store.transaction(async (tx) => {
      for (const { session, before } of sessions) {
        if (session.spawn !== undefined && made.has(session.spawn.flowId)) continue;
        const { archivedAt: _, model, labels: later, ...open } = session;
        const labels = filterMarks(
          later,
          ({ arrival: { at, runId = "" } = { at: 0 } }) => at <= beganAt && !runIds.has(runId),
        );
        const isChanged = this.#vary !== undefined && modelFor(this.#vary.variation, session.agentId);
        await insertSession(tx, { ...open, ...optional({ labels, model: isChanged ? undefined : model }) });
        const { key: sessionKey, sessionId } = session;
        for (const entry of before) await appendEntry(tx, { sessionKey, sessionId, entry }, redactor);
      }
    });
    await ensureMainSessions({ engine: this.#engine, settings: this.#live.settings });
  }

  async #inject({ run }: ScriptedRun): Promise<void> {
    const { takenBy: _, ...recorded } = run.input;
    const { message } = this.#vary?.variation ?? {};
    const isFirst = run === this.#script.runs[0]?.run;
    const input = message === undefined || !isFirst ? recorded : { ...recorded, text: message };
    const { runId, sessionKey, kind, chainId, hop, timeoutMs, route } = run;
    const chain = { chainId, hop };
    const tokensLeft =
      input.tokenLimit === undefined
        ? undefined
        : input.tokenLimit - (await getChain(this.#store.db, chainId)).tokens;
    const more = optional({ route, tokensLeft });
    await this.#engine.accept({ runId, sessionKey, kind, input, chain, timeoutMs, ...more });
  }

  /** Stops a run that somebody stopped in the record, unless the replay has stopped it already. */
  async #stop({ run }: ScriptedRun): Promise<void> {
    const own = (await this.#runs()).find((one) => this.#player.match(one)?.run === run);
    if (own !== undefined && !isEnded(own.state))
      await this.#engine.abort({ sessionKey: own.sessionKey, runId: own.runId });
  }

  /**
   * Returns when runs that a transaction of this time stopped really stopped. They could still write until it
   * was committed.
   */
  #stoppedAt(endedAt: number): number {
    const stopped = this.#script.runs.filter(({ run }) => run.state === "aborted" && run.endedAt === endedAt);
    return Math.max(endedAt, ...stopped.flatMap(({ entries }) => entries.map(({ at }) => at)));
  }

  /** Lists the events of the record, in order of time. Events of one moment have the order of the store. */
  #events(): ScriptEvent[] {
    const { gates } = this.#player;
    const events: ScriptEvent[] = [];
    const places = new Map(this.#script.record.entries.map(({ entry }, place) => [entry.id, place]));
    const last = places.size;
    for (const one of this.#script.runs) {
      const { run, entries, products } = one;
      const begin = places.get(entries[0]?.entry.id ?? "") ?? last + one.index;
      const add = (at: number, rank: number, act: ScriptEvent["act"]) => void events.push({ at, rank, act });
      if (isOrigin(run)) add(run.acceptedAt, begin - 0.3, () => this.#inject(one));
      else if (run.callId !== undefined)
        add(run.acceptedAt, begin - 0.3, () => gates.open(`call ${run.callId}`));
      if (run.startedAt !== undefined)
        add(run.startedAt, begin - 0.2, () => {
          const settings = this.#script.settingsOf(one);
          if (settings !== undefined && settings !== this.#current) {
            this.#current = settings;
            this.#live.replace(this.#adaptSettings(settings));
          }
          const name = `start ${one.index}`;
          this.#player.gates.open(name);
          this.#engine.lookAtSlots();
        });
      products.forEach(({ id, at }, index) => {
        add(at, places.get(id) ?? last, () => gates.open(`answer ${one.index} ${index}`));
      });
      for (const { entry, at } of entries)
        if ("role" in entry && entry.role === "toolResult")
          add(at, places.get(entry.id) ?? last, () => gates.open(`result ${entry.id}`));
      const { endedAt = run.acceptedAt, state } = run;
      const rank = last + this.#script.runs.length + one.index;
      if (state === "error") add(endedAt, rank, () => gates.open(`end ${one.index}`));
      // The limit of the run ends it (`limitAt`). The event keeps the replay going until then.
      if (state === "timeout") add(endedAt, rank, () => {});
      if (state === "aborted") add(this.#stoppedAt(endedAt), rank, () => this.#stop(one));
    }
    const rank = last + this.#script.runs.length - 0.5;
    for (const { flowId, endedAt: at, endReason } of this.#script.record.flows)
      if (endReason === "cancelled" && at !== undefined)
        events.push({ at: this.#stoppedAt(at), rank, act: () => gates.open(`cancel ${flowId}`) });
    for (const [callId, { beganAt }] of this.#script.jobWaits)
      events.push({ at: beganAt, rank, act: () => gates.open(`call ${callId}`) });
    for (const [callId, at] of this.#script.refused) {
      const place = places.get(callId.slice(callId.indexOf(":") + 1)) ?? last;
      events.push({ at, rank: place - 0.1, act: () => gates.open(`call ${callId}`) });
    }
    return events.sort((a, b) => a.at - b.at || a.rank - b.rank);
  }

  /** Returns the runs of the chain in the order of their acceptance, in which they match recorded ones. */
  async #runs(): Promise<Run[]> {
    const { chainId } = this.#script.record;
    return (await RUNS.all(RUNS.rows(this.#store.db, { chainId }))).sort(compareAcceptance);
  }

  async #listPlayedRuns(): Promise<PlayedRun[]> {
    const { db } = this.#store;
    const runs = await this.#runs();
    const messages = await db
      .selectFrom("messages")
      .select(["run_id", ...ENTRY_COLUMNS])
      .where("run_id", "is not", null)
      .orderBy("seq")
      .execute();
    const entries = Map.groupBy(messages, (row) => row.run_id);
    const sent = await deliveriesOf(
      db,
      runs.map(({ runId }) => runId),
    );
    const deliveries = Map.groupBy(sent, ({ runId }) => runId);
    return runs.map((run) => ({
      run,
      entries: (entries.get(run.runId) ?? []).map(readEntry),
      deliveries: deliveries.get(run.runId) ?? [],
    }));
  }

  async play(progress: Progress): Promise<Replayed> {
    await this.#seed();
    await this.#engine.start();
    const events = this.#events();
    const total = events.length;
    const lastAt = events.at(-1)?.at ?? 0;
    let idle = 0;
    for (let next = events.shift(); ; ) {
      await otherWorkDone();
      const timerAt = this.#clock.nextAt() ?? Number.POSITIVE_INFINITY;
      const nextAt = Math.min(timerAt, next?.at ?? Number.POSITIVE_INFINITY);
      if (await this.#worksOutside(nextAt)) continue;
      const endAt = next === undefined && (await this.#isBusy()) ? LATEST_AT : lastAt;
      if (next === undefined && timerAt > endAt) {
        if (endAt === lastAt || ++idle > IDLE_ROUNDS_MAX) break;
        continue;
      }
      if (timerAt <= (next?.at ?? endAt)) {
        this.#clock.fireNext();
        continue;
      }
      if (next === undefined) break;
      this.#clock.advanceTo(next.at);
      await next.act();
      next = events.shift();
      progress(total - events.length, total);
    }
    const [difference] = differencesOf(this.#player, this.#script, await this.#listPlayedRuns());
    const { record } = this.#script;
    const { chainId, entries } = record;
    const own = await labelsOfChain(this.#store.db, chainId);
    const labels = diffLabels(record, { runs: await this.#runs(), labels: own ?? {} });
    const facts = { chainId, runs: this.#script.runs.length, entries: entries.length, labels };
    const more = await this.#readVariedChain();
    return { ...facts, ...optional({ difference, varied: more }) };
  }

  /**
   * While models or tools work outside of the replay, its clock runs in real time. Returns whether the next
   * event is not due yet.
   */
  async #worksOutside(nextAt: number): Promise<boolean> {
    const pending = this.#player.live?.pending;
    const clock = this.#vary?.parts.clock;
    if (pending === undefined || clock === undefined || pending.size === 0) return false;
    const [began, now] = [clock.monotonic(), this.#clock.now()];
    const due = Promise.withResolvers<void>();
    const wait = Math.min(Math.max(0, nextAt - now), OUTSIDE_STEP_MS);
    const timer = clock.after(wait, due.resolve);
    await Promise.race([due.promise, ...[...pending].map((work) => work.catch(() => {}))]);
    timer.cancel();
    const passed = Math.ceil(clock.monotonic() - began);
    this.#clock.advanceTo(Math.min(now + passed, nextAt));
    while ((this.#clock.nextAt() ?? Number.POSITIVE_INFINITY) <= this.#clock.now()) this.#clock.fireNext();
    return this.#clock.now() < nextAt;
  }

  /** Returns whether runs of a changed chain are still at work. */
  async #isBusy(): Promise<boolean> {
    if (this.#vary === undefined) return false;
    const open = this.#store.db.selectFrom("runs").select("run_id").where("ended_at", "is", null);
    return (await open.executeTakeFirst()) !== undefined;
  }

  /** Returns the record of a changed chain. */
  async #readVariedChain(): Promise<Replayed["varied"]> {
    const { live } = this.#player;
    if (live === undefined) return undefined;
    const found = await readChainRecord(this.#store.db, this.#script.record.chainId);
    if (typeof found !== "object") return undefined;
    const record: ChainRecord = { program: this.#script.record.program, ...found };
    return { record, answers: live.answers, cost: live.cost, missing: Object.fromEntries(live.missing) };
  }

  async close(): Promise<void> {
    const stopped = this.#engine.stop(0);
    // The clock does not move by itself, so the waits of the stop are ended here.
    for (let steps = 0; steps < STOP_STEPS_MAX; steps += 1) {
      await otherWorkDone();
      if (this.#clock.nextAt() === undefined) break;
      this.#clock.fireNext();
    }
    await stopped;
    await this.#store.close();
  }
}

const STOP_STEPS_MAX = 10_000;
/** Latest time of a timer, in ms since 1970. */
const LATEST_AT = Number.MAX_SAFE_INTEGER;
/** Rounds without an event or a timer after which a changed replay whose runs have not ended is given up. */
const IDLE_ROUNDS_MAX = 1_000;
/** Maximum real time between two looks at a replay while a model works. */
const OUTSIDE_STEP_MS = 1_000;

/**
 * Runs a recorded chain again, and compares each step. With `vary`, models are really called for everything
 * that differs. Fails if the record or the changes do not allow it.
 */
export async function replayChain(
  record: ChainRecord,
  vary?: Vary,
  progress: Progress = () => {},
): Promise<Result<Replayed>> {
  const script = new Script(record, vary?.settings);
  const why = script.refusal();
  const first = script.runs.map((one) => script.settingsOf(one)).find((settings) => settings !== undefined);
  if (why !== undefined || first === undefined) {
    const text = why ?? "the prompts and settings of its runs are not kept (store.recordDays)";
    return fail("invalid_argument", `The chain cannot be replayed: ${text}.`);
  }
  const checked = vary && checkVariation(script, first, vary.variation, vary.parts.providers);
  if (checked?.ok === false) return checked;
  const replay = new Replay(script, first, vary);
  try {
    return ok(await replay.play(progress));
  } finally {
    await replay.close();
  }
}

/** The changes of a replay, and the providers of the models that it calls. */
export type WantedVariation = Pick<Vary, "variation"> & Pick<LiveParts, "providers">;

/**
 * Returns a function that runs recorded chains again, or with changes one that follows from a first message.
 * Models are called from this world.
 */
export function replayIn(world: World) {
  return async (
    start: ChainRecord | FirstMessage,
    wanted?: WantedVariation,
    progress?: Progress,
  ): Promise<Result<Replayed>> => {
    const isFirst = "message" in start;
    const record = isFirst ? draftOf(start, world.clock.now()) : start;
    if (wanted === undefined) return replayChain(record, undefined, progress);
    const { openModelPort } = await import("../../../agent/model/port.ts");
    const { variation, providers } = wanted;
    const secrets = providers.flatMap(({ apiKey = "", headers }) => [apiKey, ...Object.values(headers)]);
    const redactor = new Redactor(secrets.filter((secret) => secret !== ""));
    const parts = { providers, port: openModelPort(silenced(world)), clock: world.clock, redactor };
    const vary = { variation, parts, ...(isFirst ? { settings: start.settings } : {}) };
    return replayChain(record, vary, progress);
  };
}

const ID = "first-message";

/** Returns a record in which the agent's main session got the message at this time, and no model answered. */
function draftOf({ settings, agentId, message: text }: FirstMessage, at: number): ChainRecord {
  const sessionKey = mainKeyOf(agentId, keyRulesOf(settings));
  const run: Run = {
    runId: ID,
    sessionKey,
    sessionId: ID,
    agentId,
    laneSeq: 1,
    kind: "turn",
    state: "ok",
    input: { text },
    chainId: ID,
    hop: 0,
    attempt: 1,
    crashes: 0,
    acceptedAt: at,
    startedAt: at,
    endedAt: at,
    timeoutMs: 0,
    usage: ZERO_USAGE,
  };
  const entry: UserMessage = { id: ID, role: "user", content: [{ type: "text", text }], timestamp: at };
  const nothing = { sessions: [], flows: [], waits: [], refusals: [], deliveries: [], revisions: [] };
  const entries = [{ sessionKey, at, runId: ID, entry }];
  return { program: "", chainId: ID, runs: [run], entries, ...nothing };
}
