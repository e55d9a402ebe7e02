// Reads the params of clients that negotiated protocol version 4: they may send params that Parley does not
// know, which are ignored and listed. The list is bounded, because any client can send new names.

import { checkParams } from "../../contract/check.ts";
import { idempotencyOf } from "../../contract/idempotency.ts";
import type { IgnoredParam } from "../../contract/methods/operations.ts";
import { METHODS, type MethodName, type ParamsOf } from "../../contract/methods.ts";
import { isObject } from "../../core/json.ts";
import { fail, type Result } from "../../core/shapes/errors.ts";
import { defaultAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import type { World } from "../../world.ts";

const ROWS_MAX = 100;
const NAME_MAX_CHARS = 64;
const SHOWN_MAX_CHARS = 64;

export interface IgnoredParams {
  /** Counts these params, and writes a debug line for each one that is new. */
  note(method: string, names: readonly string[]): void;
  /** Returns the params since the start of this process, in the order of their first use. */
  rows(): IgnoredParam[];
}

export function createIgnoredParams({ log, redactor }: Pick<World, "log" | "redactor">): IgnoredParams {
  const rows = new Map<string, IgnoredParam>();
  return {
    note(method, names) {
      for (const given of names) {
        const param = redactor.line(given, NAME_MAX_CHARS);
        const id = JSON.stringify([method, param]);
        const known = rows.get(id);
        if (known === undefined && rows.size >= ROWS_MAX) continue;
        rows.set(id, { method, param, count: (known?.count ?? 0) + 1 });
        if (known === undefined) log.debug({ method, param }, "ignored an unknown param of a client");
      }
    },
    rows: () => [...rows.values()],
  };
}

/** An `agentId` that the method does not know must not be ignored if it means another session. */
function checkSession(settings: Settings, given: Record<string, unknown>): Result<void> | undefined {
  const { agentId } = given;
  const session = given.sessionKey ?? given.key;
  if (typeof agentId !== "string" || typeof session !== "string") return undefined;
  const id = agentId.trim().toLowerCase();
  const key = session.trim().toLowerCase();
  if (key.startsWith(`agent:${id}:`)) return undefined;
  if (!key.startsWith("agent:") && id === defaultAgent(settings).id) return undefined;
  const [shown, agent] = [session, agentId].map((text) => quoted(text, SHOWN_MAX_CHARS));
  return fail("invalid_argument", `${shown} is not a session of agent ${agent}`, {
    hint: "Give the whole key: agent:<id>:<name>.",
  });
}

/** Returns the params that `method` reads. Unknown ones are noted, not refused. */
export async function lenientParams<M extends MethodName>(
  deps: { readonly settings: Settings; readonly world: World; readonly ignoredParams: IgnoredParams },
  method: M,
  given: unknown,
): Promise<Result<ParamsOf<M>>> {
  const note = (names: readonly string[]): void => deps.ignoredParams.note(method, names);
  if (!isObject(given)) return checkParams(method, given, note);
  const wrong = Object.hasOwn(METHODS[method].params.properties, "agentId")
    ? undefined
    : checkSession(deps.settings, given);
  if (wrong?.ok === false) return wrong;
  // Clients of this version do not have to send an idempotency key.
  const lacksKey = idempotencyOf(method) === "required" && given.idempotencyKey === undefined;
  const whole = lacksKey ? { ...given, idempotencyKey: deps.world.ids.uuid() } : given;
  return checkParams(method, whole, note);
}
