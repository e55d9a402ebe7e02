// Engine, flows, tools and outbox on a real store. A function (`SpawnPlay`) replaces the models and plays the
// turns of each session.

import { sessionViewer } from "../../../src/access/access.ts";
import { spawnChainOf } from "../../../src/access/spawn-chain.ts";
import { engineSettings } from "../../../src/app/engine-settings.ts";
import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../../src/channels/channel.ts";
import { OutboxWorker } from "../../../src/channels/outbound.ts";
import { threadsOf } from "../../../src/channels/threads.ts";
import { optional } from "../../../src/core/optional.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import type { FlowStep, Run } from "../../../src/core/shapes/run.ts";
import type { Route, Session } from "../../../src/core/shapes/session.ts";
import { agentOf, type Settings } from "../../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { BINDING_DEADLINE, createBindingEnd, type Threads } from "../../../src/flows/delivery/bindings.ts";
import { createChildCleanup, hurryCleanup } from "../../../src/flows/job/archive.ts";
import { removeAttachments } from "../../../src/flows/job/attachments.ts";
import { CHILD_DEADLINE } from "../../../src/flows/job/end.ts";
import {
  createDeletionResume,
  DELETION_DEADLINE,
  ensureMainSessions,
} from "../../../src/flows/session/lifecycle.ts";
import { createScrub, SCRUB_DEADLINE } from "../../../src/flows/session/scrub.ts";
import { createSuccessors } from "../../../src/flows/successors.ts";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { callTool, toolNames } from "../../../src/tools/catalog.ts";
import type { ToolResult } from "../../../src/tools/tool.ts";
import type { World } from "../../../src/world.ts";
import { isQuiet, linesOf, runsOf, untilQuiet } from "../store/store-view.ts";
import {
  type CrashPoint,
  cleanup,
  crashingStore,
  diesAtWork,
  openStore,
  quietWorld,
  temporaryFolder,
} from "./engine.ts";
import { playTurn } from "./played-turn.ts";

/** One turn of a session. A `SpawnPlay` gets it as its argument. */
export interface Turn {
  readonly handle: LaneHandle;
  readonly session: Session;
  readonly input: string;
  readonly step: "message" | FlowStep;
  /** Calls a tool as the session's agent. `call` distinguishes several calls in one turn. */
  tool(name: string, args: Record<string, unknown>, call?: string): Promise<ToolResult>;
}

/** Returns the answer of a session's turn. An exception fails the run. */
export type SpawnPlay = (turn: Turn) => Promise<string> | string;

type OpenThread = NonNullable<Channel["openThread"]>;

export interface SpawnAppOptions {
  readonly settings: Settings;
  readonly play: SpawnPlay;
  readonly dir?: string;
  /** A store that is already open. Default: a store in `dir`. */
  readonly disk?: Store;
  readonly world?: World;
  readonly crash?: CrashPoint;
  /** Returns the channel's outcome of a delivery attempt. Default: sent. */
  readonly channel?: () => DeliveryOutcome;
  /** Channels in addition to webchat. */
  readonly channels?: readonly Channel[];
  /** Creates threads on the channel `discord`. If absent, the channel supports no threads. */
  readonly openThread?: OpenThread;
  /** True if the test itself stops or crashes this app. */
  readonly dies?: boolean;
}

export interface SpawnApp {
  readonly engine: Engine;
  readonly store: Store;
  readonly sent: OutgoingMessage[];
  readonly events: LiveEvent[];
  tell(sessionKey: string, text: string, runId?: string, route?: Route): Promise<Run>;
  /** Calls a tool as an operator on behalf of the session, or as the session's own client (`as`). */
  call(
    sessionKey: string,
    name: string,
    args: Record<string, unknown>,
    as?: { readonly confirmsAnswers: true; readonly signal?: AbortSignal },
  ): Promise<ToolResult>;
  route(sessionKey: string): Promise<void>;
  session(sessionKey: string): Promise<Session | undefined>;
  children(of: string): Promise<Session[]>;
  texts(sessionKey: string): Promise<string[]>;
  runs(sessionKey: string): Promise<Run[]>;
  commits(): number;
  quiet(): Promise<void>;
  isQuiet(): Promise<boolean>;
  crashed(): Promise<void>;
  /** Shuts the process down gracefully. */
  stop(graceMs: number): Promise<void>;
}

interface Parts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly play: SpawnPlay;
  readonly threads: Threads;
}

async function callAs(
  parts: Parts,
  session: Session,
  call: { id: string; name: string; args: object },
  handle?: LaneHandle,
  as?: Parameters<SpawnApp["call"]>[3],
) {
  const { engine, settings, threads } = parts;
  const chain = await spawnChainOf(engine.store.db, session);
  const context = {
    settings,
    db: engine.store.db,
    engine,
    viewer: sessionViewer(chain, settings),
    session,
    agent: agentOf(settings, session),
    chain,
    toolNames: toolNames(),
    threads,
    signal: handle?.signal ?? new AbortController().signal,
    ...(handle === undefined ? {} : { run: handle.run, wait: handle.wait }),
    ...as,
  };
  const request = { callId: call.id, attempt: 1, name: call.name, arguments: { ...call.args } };
  return callTool(context, request);
}

async function turnOf(parts: Parts, handle: LaneHandle): Promise<Turn> {
  const session = await getSession(parts.engine.store.db, handle.run.sessionKey);
  if (session === undefined) throw new Error(`no session ${handle.run.sessionKey}`);
  return {
    handle,
    session,
    input: handle.run.input.text,
    step: handle.run.flow?.step ?? "message",
    tool: (name, args, call = name) =>
      handle.duringCall(() =>
        callAs(parts, session, { id: `${handle.run.runId}:${call}`, name, args }, handle),
      ),
  };
}

function handlersOf(settings: Settings, acceptor: () => Engine) {
  const cleanup = createChildCleanup({
    settings,
    dropTranscript: () => {},
    removeAttachments: (workspace, dir) => void removeAttachments(workspace, dir),
  });
  return new Map([
    [CHILD_DEADLINE, cleanup],
    [SCRUB_DEADLINE, createScrub(() => acceptor().store)],
    [
      DELETION_DEADLINE,
      createDeletionResume(() => ({
        engine: acceptor(),
        settings,
        dropTranscript: async () => {},
      })),
    ],
    [BINDING_DEADLINE, createBindingEnd({ settings })],
  ]);
}

async function openParts(options: SpawnAppOptions, store: Store, sent: OutgoingMessage[]) {
  const { settings, play } = options;
  const world = options.world ?? quietWorld();
  const channelOf = (id: string, openThread?: OpenThread): Channel => ({
    id,
    deduplicates: true,
    async deliver(message: OutgoingMessage): Promise<DeliveryOutcome> {
      const outcome = options.channel?.() ?? { kind: "sent" };
      if (outcome.kind === "sent") sent.push(message);
      return outcome;
    },
    ...optional({ openThread }),
  });
  const own = [channelOf("webchat"), channelOf("discord", options.openThread)];
  const channels = new Map<string, Channel>(
    [...own, ...(options.channels ?? [])].map((one) => [one.id, one]),
  );
  const threads = threadsOf(channels, world);
  const engine: Engine = new Engine({
    store,
    world,
    settings: engineSettings(settings),
    deadlineHandlers: handlersOf(settings, () => engine),
    successors: createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
    }),
    executor: {
      execute: (handle) =>
        playTurn(handle, store.db, async () =>
          play(await turnOf({ engine, settings, play, threads }, handle)),
        ),
    },
  });
  const outbox = new OutboxWorker({
    of: "texts",
    db: store.db,
    commit: engine.commit,
    channels,
    world,
    owner: engine.processId,
    lookAtDates: () => engine.lookAtDates(),
    settled: (unit, delivery) => hurryCleanup(unit, delivery),
  });
  await ensureMainSessions({ engine, settings });
  engine.attach(outbox);
  await engine.start();
  return { engine, threads };
}

export async function openSpawnApp(options: SpawnAppOptions): Promise<SpawnApp> {
  const { settings, play } = options;
  const disk = options.disk ?? (await openStore(options.dir ?? temporaryFolder(), options.world));
  const crashing = crashingStore(disk, options.crash ?? { commit: 0, when: "before" });
  const store = crashing.store;
  const sent: OutgoingMessage[] = [];
  const events: LiveEvent[] = [];
  const { engine, threads } = await openParts(options, store, sent);
  engine.bus.subscribe((event) => events.push(event));
  cleanup(async () => {
    if (crashing.hasCrashed() || options.dies === true) return;
    await engine.stop(0);
  });
  let calls = 0;
  const session = (key: string) => getSession(store.db, key);
  return {
    engine,
    store,
    sent,
    events,
    session,
    async tell(sessionKey, text, runId, route) {
      const named = runId === undefined ? {} : { runId };
      const at = route === undefined ? {} : { route };
      const accepted = await engine.accept({ sessionKey, input: { text }, ...named, ...at });
      if (!accepted.ok) throw new Error(accepted.error);
      return accepted.value.run;
    },
    async call(sessionKey, name, args, as) {
      const found = await session(sessionKey);
      if (found === undefined) throw new Error(`no session ${sessionKey}`);
      calls += 1;
      const call = { id: `operator:${calls}`, name, args };
      return callAs({ engine, settings, play, threads }, found, call, undefined, as);
    },
    route: (key) =>
      store.transaction((tx) => updateSession(tx, key, { lastRoute: { channel: "webchat", to: key } })),
    async children(of) {
      const rows = await store.db
        .selectFrom("sessions")
        .select("key")
        .where("spawned_by", "=", of)
        .orderBy("row_id" as never)
        .execute();
      const found = await Promise.all(rows.map((row) => session(row.key)));
      return found.filter((child) => child !== undefined);
    },
    async texts(sessionKey) {
      const { sessionId = "" } = (await session(sessionKey)) ?? {};
      return linesOf(store.db, sessionId);
    },
    runs: (sessionKey) => runsOf(store.db, sessionKey),
    commits: crashing.commits,
    quiet: () => untilQuiet(store.db),
    isQuiet: () => isQuiet(store.db),
    async crashed() {
      await crashing.crashed;
      await disk.close();
    },
    async stop(graceMs) {
      await engine.stop(graceMs);
      await disk.close();
    },
  };
}

/** A test that a crash interrupts and that the next process finishes. */
export interface CrashStory {
  readonly app: Omit<SpawnAppOptions, "dir" | "crash">;
  /** Starts the work. Rejects if the crash happens first. */
  begin(app: SpawnApp): Promise<unknown>;
  /** Checks the store after all work has ended. */
  check(app: SpawnApp): Promise<void>;
}

/** Runs a test with one crash. Returns false if the test ended before the commit of the crash. */
export async function crashIn(story: CrashStory, point: CrashPoint): Promise<boolean> {
  const dir = temporaryFolder();
  const first = await openSpawnApp({ ...story.app, dir, crash: point }).catch(() => undefined);
  // The process crashed during its start, before it could accept a request.
  if (first === undefined) return true;
  await story.begin(first).catch(() => {});
  if (!(await diesAtWork(first))) return false;
  const second = await openSpawnApp({ ...story.app, dir });
  await second.quiet();
  await story.check(second);
  await second.engine.stop(0);
  await second.store.close();
  return true;
}
