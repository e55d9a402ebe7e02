// One gateway process of a story: built like `src/app.ts`, over a store with faults, with fake channels and
// models. It can start, stop, pause and die.

import type { Channel } from "../../src/channels/channel.ts";
import { OutboxWorker } from "../../src/channels/outbound.ts";
import { createWebchat } from "../../src/channels/webchat.ts";
import { optional } from "../../src/core/optional.ts";
import { ok } from "../../src/core/shapes/errors.ts";
import type { LiveEvent } from "../../src/core/shapes/event.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import type { Executor } from "../../src/engine/run/executions.ts";
import { createExecutor, createSandboxFor, type SandboxFor } from "../../src/execute.ts";
import { createChildCleanup, hurryCleanup, lostAttachments } from "../../src/flows/job/archive.ts";
import { removeAttachments } from "../../src/flows/job/attachments.ts";
import { CHILD_DEADLINE } from "../../src/flows/job/end.ts";
import { ensureMainSessions } from "../../src/flows/session/lifecycle.ts";
import { createScrub, SCRUB_DEADLINE } from "../../src/flows/session/scrub.ts";
import { createSuccessors } from "../../src/flows/successors.ts";
import type { Authority } from "../../src/gateway/auth.ts";
import type { Dispatcher } from "../../src/gateway/dispatch.ts";
import { createShares } from "../../src/gateway/shares.ts";
import { Connection } from "../../src/gateway/socket/connection.ts";
import type { Fanout, Listener } from "../../src/gateway/socket/fanout.ts";
import { StoreProblem } from "../../src/store/problems.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { type JsonlCopies, openJsonlCopies } from "../../src/store/sqlite/jsonl-copies.ts";
import { toolNames } from "../../src/tools/catalog.ts";
import type { Timer, World } from "../../src/world.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { hasTool, isBoxed } from "./checks/rights.ts";
import { checkCounted, checkStart, heldRuns } from "./crashes.ts";
import type { Story, Work } from "./story.ts";
import { noteBegin, watched } from "./work.ts";
import { ChannelBroke, channelsOf } from "./world/channels.ts";
import { openDoor } from "./world/door.ts";
import { Dead, type FaultPlan, ProcessFaults } from "./world/faults.ts";
import { createModel, ModelBug } from "./world/model.ts";
import { createSandbox } from "./world/sandbox.ts";

/** A paired node, for clients of a story that connect as a node. */
const NODE = {
  ...{ id: "some-node", name: "some node", platform: "story", version: "1", publicKey: "" },
  ...{ caps: [], commands: [], pairedAt: 0 },
};
const HELLO = {
  server: { version: "story", host: "story", connId: "" },
  features: { methods: [], events: [] },
  snapshot: {
    presence: [],
    health: {},
    stateVersion: { presence: 0, health: 0 },
    uptimeMs: 0,
    sessionDefaults: {
      defaultAgentId: "main",
      mainKey: "main",
      mainSessionKey: "agent:main:main",
      scope: "",
    },
  },
  policy: { maxPayload: 0, maxBufferedBytes: 0, tickIntervalMs: 0 },
};

export class GatewayProcess {
  readonly name: string;
  readonly settings: Settings;
  readonly world: World;
  faults!: ProcessFaults;
  engine!: Engine;
  dispatcher!: Dispatcher;
  fanout!: Fanout;
  authority!: Authority;
  /** When runs that crashed may start again in this process. */
  #pauses: ReadonlyMap<string, number> = new Map();
  /** The time since which the process has been running without a pause. */
  awakeMs = 0;
  state: "starting" | "up" | "stopping" | "stopped" | "dead" = "starting";
  readonly #story: Story;
  readonly #plan: FaultPlan;
  readonly #died = Promise.withResolvers<void>();
  readonly #late: (() => void)[] = [];
  #paused = false;
  #store!: Store;
  #outbox!: OutboxWorker;
  #jsonlCopies: JsonlCopies | undefined;

  constructor(story: Story, name: string, settings: Settings, plan: FaultPlan) {
    this.name = name;
    this.settings = settings;
    this.#story = story;
    this.#plan = plan;
    this.world = this.#worldOf();
  }

  get died(): Promise<void> {
    return this.#died.promise;
  }

  alive(): boolean {
    return this.state !== "dead" && this.state !== "stopped";
  }

  get paused(): boolean {
    return this.#paused;
  }

  async start(): Promise<void> {
    const story = this.#story;
    const connection = await story.database.open(this.world.log, this.#gather());
    this.faults = new ProcessFaults(this.#plan, story.time, () => this.#gone(connection.kill));
    this.#store = this.faults.wrap(connection.store);
    const open = await story.look(
      "select id from deliveries where attempt_open = 1 and route_json like '%\"plain\"%'",
    );
    for (const { id } of open) story.doubtful.add(String(id));
    story.epochs.push({ fromMs: story.time.now(), settings: this.settings });
    this.#build();
    await ensureMainSessions({ engine: this.engine, settings: this.settings });
    if (story.plan.features.files) {
      for (const { workspace, dir } of await lostAttachments(
        this.#store.db,
        this.settings,
        this.world.clock.now(),
      ))
        await removeAttachments(workspace, dir);
    }
    const lost = await heldRuns(story);
    const startedMs = story.time.now();
    await this.engine.start();
    this.#pauses = await checkCounted(story, lost, startedMs);
    await this.#become("up");
    this.awakeMs = story.time.now();
    story.trace.add(`${this.name} is up`);
  }

  /**
   * Returns a function that waits for transactions that share a commit, and sometimes fails. If it returns
   * undefined, only transactions that are ready at the same time share a commit.
   */
  #gather(): (() => Promise<void>) | undefined {
    const { time, plan } = this.#story;
    if (!plan.features.groups) return undefined;
    const luck = this.#story.luck("groups");
    return async () => {
      if (luck.chance(0.02)) throw new Error("the gathering failed");
      if (luck.chance(0.5)) await time.pass(luck.below(3));
    };
  }

  /** Shuts the process down gracefully. */
  async stop(graceMs: number): Promise<void> {
    const story = this.#story;
    await this.#become("stopping");
    story.trace.add(`${this.name} is to stop`);
    await this.engine.stop(graceMs);
    for (const work of story.works)
      if (work.process === this.name) story.wrong("EN2", `after a stop run ${work.run.runId} goes on`);
    await this.#checkParked();
    this.dispatcher.close();
    this.fanout.close();
    await this.#jsonlCopies?.flush();
    await this.#store.close();
    await this.#become("stopped");
    story.trace.add(`${this.name} has stopped after ${this.faults.operations} operations`);
  }

  /** Changes the state, unless the process has died. */
  async #become(state: GatewayProcess["state"]): Promise<void> {
    if (!this.alive()) await new Promise(() => {});
    this.state = state;
  }

  /**
   * Checks that a planned stop does not count as a crash: afterwards no run is held, unless a full disk
   * prevented the release.
   */
  async #checkParked(): Promise<void> {
    const story = this.#story;
    const held = await story.look("select run_id from runs where state in ('running', 'waiting')");
    if (held.length > 0 && !Number.isFinite(this.faults.refusedAt))
      story.wrong("EN2", `after a stop run ${String(held[0]?.run_id)} is still held`);
  }

  /** Kills the process at once. */
  die(): void {
    this.faults.die();
  }

  #gone(kill: () => void): void {
    this.state = "dead";
    this.#story.deaths += 1;
    kill();
    for (const work of [...this.#story.works]) if (work.process === this.name) this.#story.works.delete(work);
    this.#story.trace.add(`${this.name} dies at operation ${this.faults.operations}`);
    this.#died.resolve();
  }

  /** Pauses the process like a sleeping machine: no timer fires, and no operation continues. */
  pause(): void {
    this.#story.trace.add(`${this.name} stands still`);
    this.#paused = true;
    this.faults.pause();
  }

  resume(): void {
    this.#story.trace.add(`${this.name} goes on`);
    this.#paused = false;
    this.awakeMs = this.#story.time.now();
    this.faults.resume();
    for (const fire of this.#late.splice(0)) fire();
  }

  #worldOf(): World {
    const { time, plan } = this.#story;
    const startMs = time.now();
    const luck = this.#story.luck("timers");
    const lateMs = (): number => (plan.features.lateTimers ? luck.below(4) : 0);
    const fire = (action: () => void): void => {
      if (!this.alive()) return;
      if (this.#paused) this.#late.push(() => fire(action));
      else action();
    };
    const note = (level: "warn" | "error") => (fields: object, text: string) =>
      this.#logged(level, fields, text);
    const at = (atMs: number, action: () => void): Timer => time.at(atMs + lateMs(), () => fire(action));
    return {
      clock: {
        now: () => time.now(),
        monotonic: () => time.now() - startMs,
        at,
        after: (ms, action) => at(time.now() + ms, action),
      },
      ids: { uuid: () => this.#story.uuid(), orderedUuid: () => this.#story.orderedUuid() },
      random: () => luck.below(1_000) / 1_000,
      redactor: plainRedactor,
      log: { debug: () => {}, info: () => {}, warn: note("warn"), error: note("error") },
    };
  }

  /** Reports a logged error as a fault of the product, unless the story has caused the error. */
  #logged(level: "warn" | "error", fields: object, text: string): void {
    if (!this.alive()) return;
    const { err } = fields as { err?: unknown };
    this.#story.trace.add(`${level}: ${text} ${err instanceof Error ? err.message : JSON.stringify(fields)}`);
    const made = [StoreProblem, Dead, ChannelBroke, ModelBug].some((kind) => err instanceof kind);
    if (level === "error" && !made) {
      const stack = err instanceof Error ? (err.stack ?? err.message) : JSON.stringify(fields);
      this.#story.wrong("log", `${text}: ${stack}`);
    }
  }

  #build(): void {
    const { settings, world } = this;
    const story = this.#story;
    const store = this.#store;
    const channels = new Map<string, Channel>();
    const { queueMax, agentToAgent } = settings.session;
    if (story.plan.features.files) {
      this.#jsonlCopies = openJsonlCopies({ dir: settings.store.dir, log: world.log, db: store.db });
    }
    const successors = createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
    });
    this.engine = new Engine({
      store,
      world,
      successors,
      executor: this.#executor(),
      deadlineHandlers: new Map([
        [CHILD_DEADLINE, this.#cleanup()],
        // Emptying the log may start a thread, whose time the simulation does not play.
        [SCRUB_DEADLINE, createScrub(() => ({}))],
      ]),
      settings: {
        queueMax,
        ...agentToAgent,
        maxConcurrent: settings.maxConcurrent,
        maxSubagents: settings.subagents.maxConcurrent,
      },
    });
    this.#outbox = new OutboxWorker({
      of: "texts",
      db: store.db,
      commit: this.engine.commit,
      channels,
      world,
      owner: this.engine.processId,
      lookAtDates: () => this.engine.lookAtDates(),
      onSettled: (unit, delivery) => hurryCleanup(unit, delivery),
      ...optional({ watchLease: this.engine.watchLease }),
    });
    this.engine.attach(this.#outbox);
    const webchat = createWebchat(this.engine.bus, world.clock);
    for (const one of [webchat, ...channelsOf(story, { alive: () => this.alive() })])
      channels.set(one.id, one);
    this.engine.bus.subscribe((event) => this.#follow(event));
    this.#openDoor();
  }

  #openDoor(): void {
    const door = openDoor({
      settings: this.settings,
      world: this.world,
      engine: this.engine,
      sandboxFor: this.#sandboxFor(),
      dropTranscript: async (sessionId) => this.#jsonlCopies?.remove(sessionId),
    });
    Object.assign(this, door);
  }

  /** Serves a simulated socket as if it came from the network. */
  serve(socket: ConstructorParameters<typeof Connection>[1]["socket"]): void {
    const { world, authority, settings, dispatcher } = this;
    const parts = {
      world,
      authority,
      shares: createShares(),
      maxBufferedBytes: settings.gateway.maxBufferedBytes,
      // Stories have no paired devices, so a node has no rights.
      admitNode: async () => ok(NODE),
      renewDeviceToken: async () => ok(undefined),
      hello: async () => HELLO,
      join: (member: Listener) => this.fanout.add(member),
      call: dispatcher.call,
    };
    new Connection(parts, { socket, remote: "a client", countBytes: () => () => {} });
  }

  #cleanup() {
    return createChildCleanup({
      settings: this.settings,
      dropTranscript: (sessionId) => void this.#jsonlCopies?.remove(sessionId),
      removeAttachments: (workspace, dir) => void removeAttachments(workspace, dir),
    });
  }

  /**
   * I13: checks that a session is sandboxed if it must be. Here all other sessions get a sandbox, too, so
   *      that no command of a story runs on the machine.
   */
  #sandboxFor(): SandboxFor {
    const story = this.#story;
    const sandbox = createSandbox(story, () => this.alive());
    const probe = async () => ({ usable: true }) as const;
    const real = createSandboxFor(this.settings, async () => ({ find: async () => ok(sandbox), probe }));
    return async (chain) => {
      const found = await real(chain);
      const [{ key }] = chain;
      const before = isBoxed(key, story.sessions, this.settings);
      const now = isBoxed(key, await story.refresh(), this.settings);
      const boxed = found.ok && found.value !== undefined;
      if (boxed !== before && boxed !== now) story.wrong("I13", `${key} is ${boxed ? "" : "not "}contained`);
      return ok(sandbox);
    };
  }

  #follow(event: LiveEvent): void {
    const { trace } = this.#story;
    const copies = this.#jsonlCopies;
    if (event.kind === "message") copies?.note(event.sessionId);
    if (event.kind === "session" && (event.change === "created" || event.change === "reset"))
      void this.#noteCopy(event.sessionKey);
    if (event.kind === "run_started") trace.add(`run ${event.runId} begins in ${event.sessionKey}`);
    if (event.kind === "run_ended") void this.#checkHeard(event.runId);
    if (event.kind === "run_ended")
      trace.add(`run ${event.runId} of ${event.sessionKey} ends ${event.state} ${event.code ?? ""}`);
    if (event.kind === "flow") trace.add(`flow ${event.flowId} ${event.step} ${event.from} -> ${event.to}`);
    if (event.kind === "session" && event.change !== "state")
      trace.add(`${event.sessionKey} ${event.change}`);
  }

  /** U3: checks that a published end of a run is on disk. */
  async #checkHeard(runId: string): Promise<void> {
    const [row] = await this.#story.look(
      "select 1 from runs where run_id = ? and ended_at is not null",
      runId,
    );
    if (row === undefined)
      this.#story.wrong("U3", `the end of run ${runId} is published before it is on disk`);
  }

  async #noteCopy(key: string): Promise<void> {
    if (this.#jsonlCopies === undefined) return;
    const session = await getSession(this.#store.db, key).catch(() => undefined);
    if (session !== undefined) this.#jsonlCopies.note(session.sessionId);
  }

  #executor(): Executor {
    const story = this.#story;
    const { settings } = this;
    // Stories have neither channel tools nor nodes, so the tools `message` and `nodes` are never offered.
    const names = toolNames().filter((name) => !["message", "nodes"].includes(name));
    const real = createExecutor({
      settings,
      store: this.#store,
      world: this.world,
      port: createModel(story, { process: this.name, settings, toolNames: names, alive: () => this.alive() }),
      sandboxFor: this.#sandboxFor(),
      engine: () => this.engine,
    });
    const started = new WeakSet<LaneHandle>();
    return {
      execute: async (handle) => {
        const sessions = await story.refresh();
        // If the process has died, this call never returns.
        if (!this.alive()) await new Promise(() => {});
        const { sessionKey } = handle.run;
        const tools = names.filter((name) => hasTool(sessionKey, name, sessions, settings)).join();
        const work: Work = {
          process: this.name,
          run: handle.run,
          signal: handle.signal,
          beganMs: story.time.now(),
          tools,
          thinking: 0,
          calling: 0,
        };
        noteBegin(story, work);
        // After an error of the store, the same execution begins again: it keeps its slot and is no start.
        const isRepeated = started.has(handle);
        started.add(handle);
        if (!isRepeated) checkStart(story, this.#pauses, handle.run);
        try {
          return await real.execute(watched(story, settings, work, handle));
        } finally {
          story.works.delete(work);
        }
      },
    };
  }
}
