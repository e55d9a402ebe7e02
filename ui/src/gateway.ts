// Owns the page's connection to its gateway: who is signed in, what they may do, and whether it stands.
// GC1: one connection for the whole page. After it broke and stands again `epoch` has risen: whoever shows
//      something reads it anew, for what was told in between is gone.
// GC2: a token that the gateway refuses is forgotten, and the sign-in says why.

import { computed, effect, signal } from "@preact/signals";
import {
  type ClientState,
  type EventPayloads,
  GatewayError,
  type HelloOk,
} from "../../src/gateway/client/web.ts";
import { after } from "./clock.ts";
import { type Connection, isRefusal, openShown } from "./demo/connect.ts";
import { inDemo } from "./demo/scene.ts";
import { forgetToken, keepToken, keptToken, tabStorage } from "./token.ts";

/** Pause before a gateway that was not there is asked again, at the start of the page. */
const RETRY_MS = 2_000;

type Stage =
  | { readonly kind: "signed-out"; readonly problem?: string | undefined }
  | { readonly kind: "connecting"; readonly problem?: string }
  | { readonly kind: "signed-in" };

export const stage = signal<Stage>({ kind: "signed-out" });
/** State of the connection once signed in. */
export const linkState = signal<ClientState>("closed");
/** Rises whenever the connection stands anew. */
export const epoch = signal(0);
/** What the gateway said in its greeting. Only read behind the sign-in. */
export const hello = signal<HelloOk | undefined>(undefined);
/** Why the gateway said that it stops, until it is back. */
export const stopping = signal<string | undefined>(undefined);

let client: Connection | undefined;
let attempt = 0;

/** True if the token has this scope, or one that contains it. */
export function may(scope: "operator.read" | "operator.write" | "operator.admin"): boolean {
  const order = ["operator.read", "operator.write", "operator.admin"];
  const held = hello.value?.auth.scopes ?? [];
  return held.some((one) => order.indexOf(one) >= order.indexOf(scope));
}

/** Whether the token covers every session: only then the gateway says where it keeps its state. */
export function coversAll(): boolean {
  return hello.value?.snapshot.stateDir !== undefined;
}

/** Whether this gateway has a method at all. */
export function has(method: string): boolean {
  return hello.value?.features.methods.includes(method) ?? false;
}

/** The agent and the main session that stand for "main" here. */
export const defaults = computed(() => hello.value?.snapshot.sessionDefaults);

/** Any method, with params and payload that the compiler knows. Rejects with a `GatewayError`. */
export const ask: Connection["request"] = (...request) => {
  if (client === undefined) return Promise.reject(new GatewayError("CLOSED", "not signed in"));
  return client.request(...request);
};

type Listener<E extends keyof EventPayloads> = (payload: EventPayloads[E]) => void;
const listeners = new Map<string, Set<(payload: never) => void>>();

/** Hears an event of the gateway, over reconnects and sign-ins. Returns the function that ends it. */
export function on<E extends keyof EventPayloads>(event: E, listener: Listener<E>): () => void {
  const known = listeners.get(event) ?? new Set();
  listeners.set(event, known);
  known.add(listener as (payload: never) => void);
  return () => known.delete(listener as (payload: never) => void);
}

/** The words of any failure. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function hear(opened: Connection): void {
  opened.onEvent(({ event, payload }) => {
    if (opened !== client) return;
    for (const listener of listeners.get(event) ?? []) listener(payload as never);
  });
  opened.onState((state, error) => {
    if (opened !== client) return;
    if (state === "closed") return inDemo ? again() : leave(error);
    linkState.value = state;
    if (state === "connected") stands(opened);
  });
}

function stands(opened: Connection): void {
  linkState.value = "connected";
  stopping.value = undefined;
  hello.value = opened.hello;
  epoch.value++;
}

/** Lets go of the connection that there was. */
function drop(): void {
  const open = client;
  client = undefined;
  open?.close();
}

/** The demo is gone, or out of reach: there may be another one soon. */
function again(): void {
  const token = keptToken();
  linkState.value = "reconnecting";
  if (token === undefined) leave(undefined);
  else void signIn(token, { keepsView: true });
}

/** Back to the sign-in: the gateway does not take the token, or no longer (GC2). */
function leave(error: GatewayError | undefined): void {
  drop();
  forgetToken();
  stage.value = { kind: "signed-out", problem: error?.message };
}

/** Signs in with a token; failing that, `stage` says why. `keepsView`: what is shown stays meanwhile. */
export async function signIn(token: string, { keepsView = false } = {}): Promise<void> {
  const mine = ++attempt;
  if (!keepsView) {
    drop();
    stage.value = { kind: "connecting" };
  }
  try {
    const opened = await openShown(token);
    if (mine !== attempt) return opened.close();
    client = opened;
    keepToken(token);
    hear(opened);
    stands(opened);
    stage.value = { kind: "signed-in" };
  } catch (error) {
    if (mine !== attempt) return;
    if (isRefusal(error)) return leave(error);
    if (!keepsView) stage.value = { kind: "connecting", problem: wordsOf(error) };
    const pauseMs = error instanceof GatewayError ? Math.max(RETRY_MS, error.retryAfterMs ?? 0) : RETRY_MS;
    after(pauseMs, () => mine === attempt && void signIn(token, { keepsView }));
  }
}

/** Leaves nothing in this tab: neither the token nor what was read, chosen or begun to be written. */
export function signOut(): void {
  attempt++;
  drop();
  tabStorage()?.clear();
  window.location.reload();
}

/** Goes on where this tab was signed in before. */
export function resume(): void {
  const token = keptToken();
  if (token !== undefined) void signIn(token);
}

on("shutdown", ({ reason }) => {
  stopping.value = reason;
});

/** Runs `read` now, and again whenever the connection stands anew. Returns the function that ends it. */
export function whenConnected(read: () => void): () => void {
  return effect(() => {
    if (epoch.value > 0) queueMicrotask(read);
  });
}
