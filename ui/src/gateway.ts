// Owns the page's only connection to its gateway: sign-in, scopes and connection state. Each reconnect
// increments `epoch`, after which every view reads its data again, because it has missed events.
// GC2: if the gateway refuses a token, the token is deleted, and the sign-in shows the reason. The demo is
// reached through the reader's own gateway. Each connection to the demo begins with a request to the reader's
// own gateway for the demo's token, because a restart of that gateway makes a new demo with a new token.

import { computed, effect, signal } from "@preact/signals";
import { webDialer } from "../../src/contract/client/dial/web.ts";
import { GatewayError } from "../../src/contract/client/error.ts";
import { openClient } from "../../src/contract/client/open.ts";
import type {
  ClientState,
  EventPayloads,
  GatewayClient,
  HelloOk,
  ParamsOf,
} from "../../src/contract/client/types.ts";
import { THINKING_DELTAS } from "../../src/contract/protocol.ts";
import { hasScope } from "../../src/core/rules/scopes.ts";
import type { TokenScope } from "../../src/core/shapes/settings/settings.ts";
import { after } from "./clock.ts";
import { inDemo, leaveDemo } from "./demo/scene.ts";
import { filter } from "./route.ts";
import { forgetToken, keepToken, keptToken, tabStorage } from "./token.ts";

/** Pause between two attempts to connect, if the gateway is unreachable when the page starts. */
const RETRY_MS = 2_000;

type Stage =
  | { readonly kind: "signed-out"; readonly problem?: string | undefined }
  | { readonly kind: "connecting"; readonly problem?: string }
  | { readonly kind: "signed-in" };

export const stage = signal<Stage>({ kind: "signed-out" });
/** Calls `forget` when the reader has signed out, so that the next reader does not see what it forgets. */
export function onSignedOut(forget: () => void): void {
  stage.subscribe(({ kind }) => {
    if (kind === "signed-out") forget();
  });
}

/** State of the connection after sign-in. */
export const linkState = signal<ClientState>("closed");
/** Incremented by the first connection and by each reconnect. */
export const epoch = signal(0);
/** The gateway's answer when the connection was opened. Undefined before sign-in. */
export const hello = signal<HelloOk | undefined>(undefined);
/** The reason why the gateway is stopping. Undefined while it is not. */
export const stopping = signal<string | undefined>(undefined);

/** Event streams would make the page larger by a twentieth. */
type Connection = Omit<GatewayClient, "events">;

const CAPS = [THINKING_DELTAS];
const CLIENT = { id: "parley-page", mode: "webchat", displayName: "Web page" };

/** Returns whether the gateway refused the request for a reason that a retry would not change. */
function isRefusal(error: unknown): error is GatewayError {
  return error instanceof GatewayError && ["UNAUTHORIZED", "FORBIDDEN", "NOT_PAIRED"].includes(error.code);
}

async function openDemo(own: Connection): Promise<Connection> {
  const { path, token } = await own.request("demo.start").catch((error: unknown) => {
    const none = error instanceof GatewayError && error.code === "INVALID_REQUEST";
    if (none || isRefusal(error)) leaveDemo();
    throw new GatewayError("UNREACHABLE", `the demo did not start: ${String(error)}`);
  });
  const url = window.location.origin + path;
  return openClient({ url, token, client: CLIENT, caps: CAPS, reconnect: false }, webDialer);
}

async function openShown(token: string): Promise<Connection> {
  const options = { url: window.location.origin, token, client: CLIENT, caps: CAPS };
  const own = await openClient(options, webDialer);
  if (!inDemo) return own;
  try {
    return await openDemo(own);
  } finally {
    own.close();
  }
}

let client: Connection | undefined;
/** The latest attempt to connect. */
let opening: Promise<Connection> | undefined;
let attempt = 0;

/** Returns whether the token has this scope, or one that includes it. */
export function may(scope: TokenScope): boolean {
  return hasScope(hello.value?.auth.scopes ?? [], scope);
}

/** Returns whether the token covers every session: only then the gateway tells its state folder. */
export function coversAll(): boolean {
  return hello.value?.snapshot.stateDir !== undefined;
}

export function has(method: string): boolean {
  return hello.value?.features.methods.includes(method) ?? false;
}

/** Ids of the default agent and of its main session. */
export const defaults = computed(() => hello.value?.snapshot.sessionDefaults);

/** Calls a method. Rejects with a `GatewayError`. During the sign-in, waits for the connection. */
export const ask: Connection["request"] = (...request) => {
  if (client !== undefined) return client.request(...request);
  if (opening !== undefined) return opening.then((opened) => opened.request(...request));
  return Promise.reject(new GatewayError("CLOSED", "not signed in"));
};

/** Calls `sessions.list`. Every row has its derived title, because each view that names sessions needs it. */
export const listSessions = (params: ParamsOf<"sessions.list">) =>
  ask("sessions.list", { ...params, includeDerivedTitles: true });

type Listener<E extends keyof EventPayloads> = (payload: EventPayloads[E]) => void;
const listeners = new Map<string, Set<(payload: never) => void>>();

/** Subscribes to an event, also after reconnects and sign-ins. Returns a function that ends that. */
export function on<E extends keyof EventPayloads>(event: E, listener: Listener<E>): () => void {
  const known = listeners.get(event) ?? new Set();
  listeners.set(event, known);
  known.add(listener as (payload: never) => void);
  return () => known.delete(listener as (payload: never) => void);
}

/** A hint for programs, which call methods and tools. */
const FOR_PROGRAMS = /\b[a-z]+[._]list\b/;

/** Returns the error message of a thrown value, which need not be an `Error`. */
export function wordsOf(error: unknown): string {
  if (error instanceof GatewayError && FOR_PROGRAMS.test(error.hint ?? ""))
    return error.message.replace(error.hint ?? "", "").trim();
  return error instanceof Error ? error.message : String(error);
}

type Streaming = "chat" | "agent";

/** Newest streamed text (`chat`) and thinking (`agent`) of each run. */
const streamed = {
  chat: new Map<string, EventPayloads["chat"]>(),
  agent: new Map<string, EventPayloads["agent"]>(),
};

/** Returns the newest streamed text or thinking of each run, for a session that is opened meanwhile. */
export function streamedSoFar<E extends Streaming>(event: E): Iterable<EventPayloads[E]> {
  return (streamed[event] as Map<string, EventPayloads[E]>).values();
}

function forgetStreamed(): void {
  streamed.chat.clear();
  streamed.agent.clear();
}

function listenTo(opened: Connection): void {
  opened.onEvent(({ event, payload }) => {
    if (opened !== client) return;
    for (const listener of listeners.get(event) ?? []) listener(payload as never);
  });
  opened.onState((state, error) => {
    if (opened !== client) return;
    // The gateway sends the texts so far again after a reconnect.
    if (state !== "connected") forgetStreamed();
    if (state === "closed") return inDemo ? again() : leave(error);
    linkState.value = state;
    if (state === "connected") takeConnection(opened);
  });
}

function takeConnection(opened: Connection): void {
  linkState.value = "connected";
  stopping.value = undefined;
  hello.value = opened.hello;
  epoch.value++;
}

function drop(): void {
  const open = client;
  client = undefined;
  opening = undefined;
  forgetStreamed();
  open?.close();
}

/** Connects again after the demo has ended or become unreachable, because a new one may start. */
function again(): void {
  const token = keptToken();
  linkState.value = "reconnecting";
  if (token === undefined) leave(undefined);
  else void signIn(token, { keepsView: true });
}

/** Returns to the sign-in, because the gateway refuses the token (GC2). */
function leave(error: GatewayError | undefined): void {
  drop();
  forgetToken();
  stage.value = { kind: "signed-out", problem: error?.message };
}

/** If it fails, `stage` says why. `keepsView`: keeps the current view visible meanwhile. */
export async function signIn(token: string, { keepsView = false } = {}): Promise<void> {
  const mine = ++attempt;
  if (!keepsView) {
    drop();
    stage.value = { kind: "connecting" };
  }
  try {
    opening = openShown(token);
    const opened = await opening;
    if (mine !== attempt) return opened.close();
    client = opened;
    keepToken(token);
    listenTo(opened);
    takeConnection(opened);
    stage.value = { kind: "signed-in" };
  } catch (error) {
    if (mine !== attempt) return;
    if (isRefusal(error)) return leave(error);
    if (!keepsView) stage.value = { kind: "connecting", problem: wordsOf(error) };
    const pauseMs = error instanceof GatewayError ? Math.max(RETRY_MS, error.retryAfterMs ?? 0) : RETRY_MS;
    after(pauseMs, () => mine === attempt && void signIn(token, { keepsView }));
  }
}

/** Shows the views before the connection is open. Returns false if the sign-in has ended. */
export function enterEarly(): boolean {
  if (hello.value !== undefined || stage.value.kind === "signed-out") return false;
  stage.value = { kind: "signed-in" };
  return true;
}

/** Signs out: clears the token, and this tab's loaded data, selections and drafts. */
export function signOut(): void {
  attempt++;
  drop();
  tabStorage()?.clear();
  for (const view of ["sessions", "flow"] as const) filter(view, "");
  window.location.reload();
}

/** Signs in again with the token that this tab has stored. */
export function resume(): void {
  const token = keptToken();
  if (token !== undefined) void signIn(token);
}

on("chat", (event) => {
  streamed.chat.delete(event.runId);
  if (event.state === "delta") streamed.chat.set(event.runId, event);
  else streamed.agent.delete(event.runId);
});

on("agent", (event) => {
  const { runId, stream } = event;
  if (stream === "assistant" || stream === "flow") return;
  if (stream === "thinking_delta") streamed.agent.set(runId, event);
  else {
    streamed.agent.delete(runId);
    if (stream !== "retry") streamed.chat.delete(runId);
  }
});

on("shutdown", ({ reason }) => {
  stopping.value = reason;
});

/** Calls `read` at once if the page is connected, and after each connect, until the result is called. */
export function whenConnected(read: () => void): () => void {
  return effect(() => {
    if (epoch.value > 0) queueMicrotask(read);
  });
}
