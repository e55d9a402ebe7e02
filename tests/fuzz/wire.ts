// A real gateway for fuzzing over the network: tokens with few rights, sessions of two agents, and client
// sockets.

import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "ws";
import { optional } from "../../src/core/optional.ts";
import type { TokenScope } from "../../src/core/shapes/settings/settings.ts";
import { insertDelivery } from "../../src/store/queries/channels/deliveries.ts";
import { getSession, insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { realWorld, type World } from "../../src/world.ts";
import { sessionRow, userMessage } from "../core/rows.ts";
import { type Frame, type House, type HouseOptions, joined, openHouse, type Raw } from "../gateway/kit.ts";
import { GROUND } from "../kit/cleanup.ts";
import { cleanUp } from "../kit/engine/engine.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";

const token = (text: string, scopes: readonly TokenScope[], sessions?: readonly string[]) => ({
  token: text,
  role: "operator" as const,
  scopes,
  ...optional({ sessions }),
});

/** A token with full rights, but only for the sessions of the agent `main`. */
export const MAIN_TOKEN = "token-of-main";
/** A token that may only read. */
export const READER_TOKEN = "token-of-a-reader";
/** A session that the reader's token covers, but not the token of `main`. */
export const OTHER = "agent:research:main";
/** Time after which the gateway forgets wrong tokens. */
const FORGIVEN_AFTER_MS = 120_000;

/**
 * Returns a world whose clock can be advanced, so that the gateway forgets wrong tokens between two
 * inputs.
 */
function movableWorld(): World & { moveOn(): void } {
  const real = realWorld({ level: "silent" });
  let aheadMs = 0;
  return {
    ...real,
    clock: {
      ...real.clock,
      now: () => real.clock.now() + aheadMs,
      at: (atMs, fire, keep) => real.clock.at(atMs - aheadMs, fire, keep),
    },
    moveOn: () => {
      aheadMs += FORGIVEN_AFTER_MS;
    },
  };
}

export interface FuzzedHouse extends House {
  /** Makes the gateway forget wrong tokens. */
  forgive(): void;
  close(): Promise<void>;
}

/** The token of incoming web hooks. */
export const HOOK_TOKEN = "token-of-the-fuzzed-hooks";
const signed = {
  ...{ id: "signed", match: { events: [] }, deliver: false, message: "{{body}}" },
  ...{ preset: "github" as const, secret: "nobody-here-knows-this-secret" },
};

/**
 * Opens a gateway with three agents. Their tools execute no commands and write only into a temporary
 * folder.
 */
export async function openFuzzedHouse(more: Pick<HouseOptions, "model"> = {}): Promise<FuzzedHouse> {
  const base = mkdtempSync(join(GROUND, "parley-fuzz-house-"));
  const workspace = join(base, "workspace");
  mkdirSync(join(base, "store"));
  const world = movableWorld();
  const { tools } = settingsWith();
  const house = await openHouse({
    ...more,
    world,
    dir: join(base, "store"),
    choices: {
      agents: ["main", "research", "writer"].map((id) => agentSettings(id, { workspace })),
      tools: { ...tools, filter: { allow: [], deny: ["exec"] } },
      features: { hooks: { enabled: true, token: HOOK_TOKEN, mappings: [signed] } },
    },
    gateway: {
      tokens: [
        token(MAIN_TOKEN, ["operator.admin"], ["agent:main:*"]),
        token(READER_TOKEN, ["operator.read"]),
        { token: "token-of-a-node", role: "node", scopes: [] },
      ],
    },
  });
  return {
    ...house,
    forgive: () => world.moveOn(),
    async close() {
      await cleanUp();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** Adds sessions, each with messages and a pending delivery. */
export async function fillHouse(house: House, keys: readonly string[]): Promise<void> {
  await house.store.transaction(async (tx) => {
    for (const [index, key] of keys.entries()) {
      const sessionId = `id-${index}`;
      const agentId = key.split(":")[1] ?? "";
      // Several sessions have the same time, so that a cursor must distinguish them by key.
      const row = sessionRow(key, {
        sessionId,
        agentId,
        kind: "group",
        updatedAt: 1_000 + Math.floor(index / 3),
      });
      if ((await getSession(tx, key)) === undefined) await insertSession(tx, row);
      for (const number of [1, 2, 3]) {
        const entry = userMessage(`m-${index}-${number}`, `alpha beta ${number} of ${key}`);
        await appendEntry(tx, { sessionKey: key, sessionId, entry }, plainRedactor);
      }
      await insertDelivery(tx, {
        id: `d-${index}`,
        sessionKey: key,
        kind: "send",
        route: { channel: "telegram", to: key },
        text: "text",
        state: "failed",
        createdAt: index,
      });
    }
  });
}

/** The socket of one input: it sends the given frames and stores the received ones. */
export interface Caller {
  readonly socket: WebSocket;
  readonly frames: Frame[];
  /** Resolves with the close code, or with 1006 if there was no close frame. */
  readonly closed: Promise<number>;
  /**
   * Resolves when `done` returns true for the received frames, or when the socket is closed. It is called
   * for every frame.
   */
  until(done: (frames: readonly Frame[]) => boolean): Promise<void>;
}

export async function call(url: string): Promise<Caller> {
  const socket = new WebSocket(url);
  const frames: Frame[] = [];
  const ended = Promise.withResolvers<number>();
  let isOver = false;
  let look = (): void => {};
  socket.on("message", (data) => {
    frames.push(JSON.parse(data.toString()));
    look();
  });
  socket.on("close", (code) => {
    isOver = true;
    ended.resolve(code);
    look();
  });
  socket.on("error", () => {});
  await once(socket, "open");
  return {
    socket,
    frames,
    closed: ended.promise,
    until: (done) =>
      new Promise((resolve) => {
        look = () => {
          if (isOver || done(frames)) resolve();
        };
        look();
      }),
  };
}

/** A connected socket that sends one request after another. */
export interface Asker {
  readonly raw: Raw;
  ask(method: string, params?: unknown): Promise<Frame>;
}

export function asker(house: House, withToken: string): Promise<Asker> {
  return askGateway(house.url, withToken);
}

/** Connects to a gateway at any address. */
export async function askGateway(url: string, withToken: string): Promise<Asker> {
  const raw = await joined({ url }, { auth: { token: withToken } });
  let asked = 0;
  return {
    raw,
    async ask(method, params) {
      // Drops the frames of earlier requests.
      raw.frames.length = 0;
      asked += 1;
      const id = `ask-${asked}`;
      raw.send({ type: "req", id, method, params });
      return raw.res(id);
    },
  };
}
