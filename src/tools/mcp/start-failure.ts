// Describes why the start of an MCP server failed. Models may read the reason, so it is always Parley's own
// text. The server's output is kept separately, for people.

import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import { connectionCause } from "../../world/outgoing.ts";
import { MachineSignInFailed } from "./sign-in/machine.ts";
import { needOf, wantsSignIn } from "./sign-in/sign-in.ts";

/** Maximum number of causes that are followed. */
const CAUSES_MAX = 5;

interface Facts {
  readonly code?: unknown;
  readonly status?: unknown;
  readonly data?: { readonly status?: unknown };
  readonly cause?: unknown;
}

const factsOf = (error: unknown): Facts =>
  typeof error === "object" && error !== null ? (error as Facts) : {};

/** Returns a failure and its causes. */
function chainOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let at = error; chain.length < CAUSES_MAX && at !== undefined; at = factsOf(at).cause) chain.push(at);
  return chain;
}

/** Returns the failure of a sign-in without a person among the causes. Its request was not sent. */
export const machineFailure = (error: unknown): MachineSignInFailed | undefined =>
  chainOf(error).find((one) => one instanceof MachineSignInFailed);

/** Joins the messages of a failure and its causes, because the first one often says little. */
function messagesOf(error: unknown): string {
  const texts: string[] = [];
  for (const one of chainOf(error)) {
    const text = one instanceof Error ? one.message : String(one);
    if (!texts.some((told) => told.includes(text))) texts.push(text);
  }
  return texts.join(": ");
}

/** A failed start, with the server's output. */
export class StartFailure extends Error {
  readonly words: string;

  constructor(cause: unknown, words: string) {
    super("it did not start", { cause });
    this.words = words;
  }
}

/** Resolves with the work, or rejects when the signal aborts. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Error("it took too long"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Returns why a start failed: Parley's own reason, and the text of the server or the library. */
export function startProblem(
  error: unknown,
  { name, reach }: McpServerSettings,
): { readonly why: string; readonly said: string } {
  const cause = error instanceof StartFailure ? error.cause : error;
  const heard = error instanceof StartFailure ? error.words : "";
  const describeFailure = (why: string) => ({ why, said: heard });
  const { code, data } = factsOf(cause);
  const network = connectionCause(cause);
  if (reach.kind === "stdio") {
    if (network?.startsWith("ENOENT"))
      return describeFailure(`there is no program ${reach.command}, or no folder ${reach.cwd}`);
    if (network?.startsWith("EACCES")) return describeFailure(`the program ${reach.command} may not be run`);
    if (code === "CONNECTION_CLOSED" || code === "ERA_NEGOTIATION_FAILED")
      return describeFailure("the program ended before it had answered");
  } else {
    const failed = machineFailure(cause);
    if (failed !== undefined) return { why: failed.message, said: messagesOf(failed.cause) };
    if (network !== undefined) return describeFailure(`it can't be reached (${network})`);
    if (needOf(cause) !== undefined) return { why: wantsSignIn(name), said: "" };
    const { status } = data ?? {};
    if (status === 401 || status === 403)
      return describeFailure(`it answered ${status}: look at its headers in the configuration`);
    if (typeof status === "number")
      return describeFailure(`it answered ${status}: is there an MCP server at its url?`);
  }
  const message = messagesOf(cause);
  return { why: "the handshake failed", said: heard === "" ? message : `${message}; ${heard}` };
}
