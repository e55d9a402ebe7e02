// Owns the answer to an ACP agent that asks whether it may do something: by policy, or by an operator.
// PD1: whatever goes wrong is a denial: no answer in time, a run that ends, a gateway that stops, an agent
//      that offers no way to say no.
// PD2: a question lives as long as the process that asked it: it is kept in memory, and bounded.

import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk/unstable";
import type { PermissionQuestion } from "../core/permission.ts";
import type { Redactor } from "../core/redact.ts";
import type { Log, World } from "../world.ts";

const OPEN_MAX = 200;
/** Of one session: an agent that asks without end takes no other one's place. */
const OPEN_OF_SESSION_MAX = 20;
const TITLE_MAX_CHARS = 300;
const DETAIL_MAX_CHARS = 4_000;

export type Decision = "allow" | "deny";

export interface Asked {
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

/** Where questions wait for an operator. */
export class PermissionDesk {
  readonly #world: World;
  readonly #open = new Map<string, Open>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Resolves with what an operator says, and with a denial when nobody does. */
  ask(asked: Asked, signal: AbortSignal, log: Log = this.#world.log): Promise<Decision> {
    const { askMs, rawInput, title, kind, ...rest } = asked;
    if (signal.aborted || !this.#hasRoom(asked.sessionKey)) return Promise.resolve("deny");
    const { clock, ids, redactor } = this.#world;
    const askedAt = clock.now();
    const detail =
      rawInput == null ? {} : { detail: shown(redactor, JSON.stringify(rawInput), DETAIL_MAX_CHARS) };
    const question: PermissionQuestion = {
      ...{ id: ids.uuid(), ...rest, title: shown(redactor, title, TITLE_MAX_CHARS) },
      ...(kind === undefined ? {} : { kind }),
      ...{ ...detail, askedAt, expiresAt: askedAt + askMs },
    };
    const { promise, resolve } = Promise.withResolvers<Decision>();
    const settle = (decision: Decision): void => {
      this.#open.delete(question.id);
      resolve(decision);
    };
    this.#open.set(question.id, { question, settle });
    const timer = clock.at(question.expiresAt, () => settle("deny"));
    const onAbort = (): void => settle("deny");
    signal.addEventListener("abort", onAbort, { once: true });
    const { id: permissionId, title: what } = question;
    log.warn({ permissionId, what }, "an agent asks for permission: parley permissions");
    return promise.finally(() => {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
    });
  }

  #hasRoom(sessionKey: string): boolean {
    const ofSession = this.list().filter((question) => question.sessionKey === sessionKey);
    return this.#open.size < OPEN_MAX && ofSession.length < OPEN_OF_SESSION_MAX;
  }

  /** What is asked at this moment, oldest first. */
  list(): PermissionQuestion[] {
    return [...this.#open.values()].map(({ question }) => question);
  }

  /** False: nobody asks that, or not any more. */
  answer(id: string, decision: Decision): boolean {
    const open = this.#open.get(id);
    open?.settle(decision);
    return open !== undefined;
  }
}

function shown(redactor: Redactor, text: string, max: number): string {
  const { text: masked, whole } = redactor.beginning(text, max);
  return whole ? masked : `${masked}…`;
}

/** The option that says it: for this once where there is one. */
export function outcomeFor(
  decision: Decision,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}
