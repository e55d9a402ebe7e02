// Engine, flows and outbox on a real store. A function replaces the model and plays each turn of a session.

import { operatorViewer } from "../../../src/access/access.ts";
import { engineSettings } from "../../../src/app/engine-settings.ts";
import { featureRunEnded, featureTimers, isTimerOn } from "../../../src/app/features.ts";
import type { Channel, DeliveryOutcome, OutgoingMessage } from "../../../src/channels/channel.ts";
import { type Inbound, openInbound } from "../../../src/channels/inbound.ts";
import { OutboxWorker } from "../../../src/channels/outbound.ts";
import { optional } from "../../../src/core/optional.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import type { FlowStep, Run } from "../../../src/core/shapes/run.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import type { Unit } from "../../../src/engine/unit.ts";
import { type SendRequest, sendToSession, sentBefore } from "../../../src/flows/conversation/send.ts";
import {
  createFilesCleanup,
  INBOUND_DEADLINE,
  INBOUND_FILES_DEADLINE,
} from "../../../src/flows/delivery/inbound-files.ts";
import { removeAttachments } from "../../../src/flows/job/attachments.ts";
import { ensureMainSessions } from "../../../src/flows/session/lifecycle.ts";
import { createSuccessors } from "../../../src/flows/successors.ts";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { sendResult } from "../../../src/tools/sessions/send.ts";
import { toolResult } from "../../../src/tools/tool.ts";
import type { World } from "../../../src/world.ts";
import { type Choices, settingsWith } from "../../tools/app.ts";
import { isQuiet, linesOf, runsOf, untilQuiet } from "../store/store-view.ts";
import { type CrashPoint, cleanup, crashingStore, openStore, quietWorld, temporaryFolder } from "./engine.ts";
import { playTurn } from "./played-turn.ts";

export interface Actor {
  readonly handle: LaneHandle;
  /** The text of the message that started the turn. */
  readonly input: string;
  readonly step: "message" | FlowStep;
  send(
    to: string,
    text: string,
    timeoutSeconds?: number,
    call?: string,
    more?: Partial<SendRequest>,
  ): Promise<Record<string, unknown>>;
}

/** Returns the answer of a session's turn. An exception fails the run. */
export type Play = (actor: Actor) => Promise<string> | string;

export interface FlowApp {
  readonly engine: Engine;
  readonly store: Store;
  readonly settings: Settings;
  readonly dir: string;
  readonly sent: OutgoingMessage[];
  readonly events: LiveEvent[];
  /** Receives messages from people on the channel `chat`. */
  readonly inbound: Inbound;
  /** Called when a delivery is added to the outbox. */
  tell(sessionKey: string, text: string, more?: { runId?: string; timeoutMs?: number }): Promise<Run>;
  /** Gives each session a chat in which people read the session's texts. */
  route(...keys: string[]): Promise<void>;
  texts(sessionKey: string): Promise<string[]>;
  runs(sessionKey: string): Promise<Run[]>;
  session(sessionKey: string): Promise<Session>;
  send(
    requesterKey: string,
    targetKey: string,
    text: string,
    timeoutSeconds: number,
    inReplyTo?: string,
  ): Promise<Record<string, unknown>>;
  /** Resolves after the planned crash, when the store is closed. */
  crashed(): Promise<void>;
  commits(): number;
  /** Resolves when no run, flow or delivery is unfinished. */
  quiet(): Promise<void>;
  isQuiet(): Promise<boolean>;
  /** Shuts the app down gracefully. */
  stop(graceMs: number): Promise<void>;
}

export interface FlowAppOptions {
  /** False if nobody here reads live text. Default true. */
  readonly showsText?: boolean;
  readonly plays: Record<string, Play>;
  readonly choices?: Choices;
  readonly dir?: string;
  /** A store that is already open; the app does not close it. Default: an embedded store in `dir`. */
  readonly disk?: Store;
  readonly world?: World;
  readonly crash?: CrashPoint;
  /** Returns the channel's outcome of a delivery attempt. Default: sent. */
  readonly channel?: (message: OutgoingMessage) => DeliveryOutcome | Promise<DeliveryOutcome>;
  /**
   * True if the test simulates a crash by closing the store. In this case the clean-up does not stop the app.
   */
  readonly dies?: boolean;
  readonly deduplicates?: boolean;
  /** A channel on which people write. Its messages arrive at `inbound` of the app. */
  readonly chat?: Channel;
  /** Number of slots. Default: as in the settings. */
  readonly maxConcurrent?: number;
  /** Called before each commit. If it returns true, the commit fails as if the disk were full. */
  readonly refuses?: () => boolean;
  /** Called after each commit, before its caller learns of it. */
  readonly committed?: (store: Store) => Promise<void>;
}

/** Wraps a store. Commits for which `refuses` returns true fail and are rolled back. */
function watchedStore(
  store: Store,
  { refuses = () => false, committed = async () => {} }: Pick<FlowAppOptions, "refuses" | "committed">,
): Store {
  return {
    ...store,
    async transaction(work) {
      const result = await store.transaction(async (tx) => {
        const value = await work(tx);
        if (refuses()) throw new Error("the disk is full");
        return value;
      });
      await committed(store);
      return result;
    },
  };
}

/** The rights of a caller that sees every session. */
const EVERYTHING = operatorViewer(["operator.admin"]);

/** Sends a message, and returns the result that the sender's tool call would get. */
export async function sendAs(
  parts: { readonly engine: Engine; readonly settings: Settings },
  request: SendRequest,
): Promise<Record<string, unknown>> {
  const sent = await sendToSession(parts, request);
  return toolResult(sent.ok ? ok(sendResult(parts.settings, request.requester, sent.value)) : sent);
}

function actorOf(handle: LaneHandle, engine: Engine, settings: Settings): Actor {
  return {
    handle,
    input: handle.run.input.text,
    step: handle.run.flow?.step ?? "message",
    send: (to, text, timeoutSeconds = 30, call = to, more = {}) =>
      handle.duringCall(async () => {
        const requester = await getSession(engine.store.db, handle.run.sessionKey);
        const target = await getSession(engine.store.db, to);
        if (requester === undefined || target === undefined) throw new Error(`no session ${to}`);
        const request = {
          requester,
          requesterRun: handle.run,
          callId: `${handle.run.runId}:${call}`,
          target,
          text,
          timeoutSeconds,
          signal: handle.signal,
          viewer: EVERYTHING,
          wait: handle.wait,
          ...more,
        };
        const before = await sentBefore({ engine, settings }, request);
        return before === undefined
          ? sendAs({ engine, settings }, request)
          : sendResult(settings, requester, before);
      }),
  };
}

/**
 * Builds the parts of an engine for a test in the same way as `app.ts`, with scripted turns and one channel
 * that the test controls.
 */
function buildParts(parts: {
  options: FlowAppOptions;
  store: Store;
  world: World;
  settings: Settings;
  sent: OutgoingMessage[];
}): { engine: Engine; inbound: Inbound } {
  const { options, store, world, settings, sent } = parts;
  const channels = new Map<string, Channel>();
  channels.set("webchat", {
    id: "webchat",
    deduplicates: options.deduplicates ?? true,
    async deliver(message) {
      const outcome = (await options.channel?.(message)) ?? { kind: "sent" as const };
      if (outcome.kind === "sent") sent.push(message);
      return outcome;
    },
  });
  if (options.chat !== undefined) channels.set(options.chat.id, options.chat);
  const engine: Engine = new Engine({
    store,
    world,
    settings: { ...engineSettings(settings), ...optional({ maxConcurrent: options.maxConcurrent }) },
    successors: createSuccessors({
      settings,
      transcriptPath: (sessionId) => store.transcriptPath(sessionId),
      runEnded: featureRunEnded,
    }),
    deadlineHandlers: new Map([
      [INBOUND_DEADLINE, (unit: Unit, key: string) => inbound.burstDue(unit, key)],
      [
        INBOUND_FILES_DEADLINE,
        createFilesCleanup(settings, (workspace, dir) => void removeAttachments(workspace, dir)),
      ],
      ...[...featureTimers({ settings, engine: () => engine })].filter(([kind]) => isTimerOn(kind, settings)),
    ]),
    executor: {
      execute: (handle) => {
        const play = options.plays[handle.run.sessionKey] ?? (({ input }) => `echo ${input}`);
        return playTurn(handle, store.db, () => play(actorOf(handle, engine, settings)));
      },
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
    ...optional({ watchLease: engine.watchLease }),
  });
  engine.attach(outbox);
  const inbound = openInbound({ engine, settings, world, checkModel: (name) => ok(name) });
  return { engine, inbound };
}

export async function openFlowApp(options: FlowAppOptions): Promise<FlowApp> {
  const world = options.world ?? quietWorld();
  const dir = options.dir ?? temporaryFolder();
  const settings = settingsWith(options.choices ?? {});
  const disk = options.disk ?? (await openStore(dir, world));
  const crashing = crashingStore(watchedStore(disk, options), options.crash ?? { commit: 0, when: "before" });
  const store = crashing.store;
  const sent: OutgoingMessage[] = [];
  const events: LiveEvent[] = [];
  const { engine, inbound } = buildParts({ options, store, world, settings, sent });
  engine.bus.subscribe((event) => events.push(event));
  if (options.showsText !== false) engine.bus.showText();
  await ensureMainSessions({ engine, settings });
  await engine.start();
  cleanup(async () => {
    // A crashed process cannot be stopped.
    if (crashing.hasCrashed() || options.dies === true) return;
    await engine.stop(0);
  });
  const sessionOf = async (key: string): Promise<Session> => {
    const session = await getSession(store.db, key);
    if (session === undefined) throw new Error(`no session ${key}`);
    return session;
  };
  return {
    engine,
    store,
    settings,
    dir,
    sent,
    events,
    inbound,
    session: sessionOf,
    async tell(sessionKey, text, more = {}) {
      const accepted = await engine.accept({ sessionKey, input: { text }, ...more });
      if (!accepted.ok) throw new Error(accepted.error);
      return accepted.value.run;
    },
    async route(...keys) {
      await store.transaction(async (tx) => {
        for (const key of keys) await updateSession(tx, key, { lastRoute: { channel: "webchat", to: key } });
      });
    },
    texts: async (sessionKey) => linesOf(store.db, (await sessionOf(sessionKey)).sessionId),
    runs: (sessionKey) => runsOf(store.db, sessionKey),
    async send(requesterKey, targetKey, text, timeoutSeconds, inReplyTo) {
      const [requester, target] = [await sessionOf(requesterKey), await sessionOf(targetKey)];
      const callId = world.ids.uuid();
      const signal = new AbortController().signal;
      const request = { requester, target, callId, text, timeoutSeconds, signal };
      return sendAs({ engine, settings }, { ...request, ...optional({ inReplyTo }) });
    },
    commits: crashing.commits,
    isQuiet: () => isQuiet(store.db),
    async stop(graceMs) {
      await engine.stop(graceMs);
      await disk.close();
    },
    async crashed() {
      await crashing.crashed;
      await disk.close();
    },
    quiet: () => untilQuiet(store.db),
  };
}
