// Answers permission requests of ACP agents, by policy or by an operator. Open requests are kept in memory
// while the agent's process lives. Their number is limited.
// PD1: in each of these cases a request is denied: no answer in time, a run that ends, a gateway that stops,
//      an agent that offers no option to deny.

import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk/unstable";
import { optional } from "../../core/optional.ts";
import type { PermissionQuestion } from "../../core/shapes/permission.ts";
import type { Log, World } from "../../world.ts";

const OPEN_MAX = 200;
/** Maximum number of open requests of one session, so that one agent can't block others. */
const OPEN_OF_SESSION_MAX = 20;
const TITLE_MAX_CHARS = 300;
const DETAIL_MAX_CHARS = 4_000;

export type Decision = "allow" | "deny";

export interface PermissionRequest {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  readonly title: string;
  readonly kind?: string | undefined;
  readonly rawInput: unknown;
  readonly askMs: number;
}

interface Open {
  readonly question: PermissionQuestion;
  settle(decision: Decision): void;
}

/** Holds requests until an operator answers. */
export class PermissionDesk {
  readonly #world: World;
  readonly #open = new Map<string, Open>();
  readonly #changed: (sessionKey: string) => void;

  /** `changed`: called after a request of a session was opened or answered. */
  constructor(world: World, changed: (sessionKey: string) => void) {
    this.#world = world;
    this.#changed = changed;
  }

  /** Resolves with the operator's decision, or with a denial if the operator does not decide in time. */
  ask(asked: PermissionRequest, signal: AbortSignal, log: Log = this.#world.log): Promise<Decision> {
    const { askMs, rawInput, title, kind, ...rest } = asked;
    if (signal.aborted || !this.#hasRoom(asked.sessionKey)) return Promise.resolve("deny");
    const { clock, ids, redactor } = this.#world;
    const askedAt = clock.now();
    const detail =
      rawInput == null ? {} : { detail: redactor.cut(JSON.stringify(rawInput), DETAIL_MAX_CHARS) };
    const question: PermissionQuestion = {
      id: ids.uuid(),
      ...rest,
      title: redactor.cut(title, TITLE_MAX_CHARS),
      ...optional({ kind }),
      ...detail,
      askedAt,
      expiresAt: askedAt + askMs,
    };
    const { promise, resolve } = Promise.withResolvers<Decision>();
    const settle = (decision: Decision): void => {
      if (this.#open.delete(question.id)) this.#changed(question.sessionKey);
      resolve(decision);
    };
    this.#open.set(question.id, { question, settle });
    this.#changed(question.sessionKey);
    const timer = clock.at(question.expiresAt, () => settle("deny"));
    const onAbort = (): void => settle("deny");
    signal.addEventListener("abort", onAbort, { once: true });
    const { id: permissionId, title: what } = question;
    log.warn({ permissionId, what }, "an agent asks for permission; answer with: parley permissions");
    return promise.finally(() => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
    });
  }

  #hasRoom(sessionKey: string): boolean {
    const ofSession = this.list().filter((question) => question.sessionKey === sessionKey);
    return this.#open.size < OPEN_MAX && ofSession.length < OPEN_OF_SESSION_MAX;
  }

  /** Returns the open requests, oldest first. */
  list(): PermissionQuestion[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  /** Answers a request. Returns false if it is not open. */
  answer(id: string, decision: Decision): boolean {
    const open = this.#open.get(id);
    open?.settle(decision);
    return open !== undefined;
  }
}

/** Returns the agent's option for a decision. "Once" is preferred to "always". */
export function outcomeFor(
  decision: Decision,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}
