// Parses the bodies of web hooks, and finds the delivery id of a request.
// An error names the unknown field, or the type that a field must have.

import type { BodyName, BodyOf } from "../../contract/bodies.ts";
import { checkBody } from "../../contract/check.ts";
import { isObject } from "../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { LAST, WEBCHAT } from "../../core/shapes/route.ts";
import { checkedKey } from "../../gateway/http/request.ts";
import type { HookMapping } from "./settings.ts";

const GITHUB_EVENT = /^[a-z0-9_]{1,64}$/;

function wrong(text: string): Failure {
  return fail("invalid_argument", text);
}

type AgentBody = BodyOf<"POST /hooks/agent">;

/** Returns the fields of a body that fit the schema; a null field counts as absent. */
function fieldsOf<B extends BodyName>(name: B, body: unknown): Promise<Result<BodyOf<B>>> {
  const isSet = ([, value]: [string, unknown]) => value !== null;
  return checkBody(name, isObject(body) ? Object.fromEntries(Object.entries(body).filter(isSet)) : body);
}

export async function readAgentBody(body: unknown): Promise<Result<AgentBody>> {
  const fields = await fieldsOf("POST /hooks/agent", body);
  if (!fields.ok) return fields;
  const read = fields.value;
  if (read.deliver !== true && read.to !== undefined) return wrong("to requires deliver: true");
  const place = checkPlaceOf(read);
  if (!place.ok) return place;
  if ((read.timeoutSeconds ?? 0) < 0) return wrong("timeoutSeconds must not be less than 0");
  return ok(read);
}

/**
 * Checks the destination, which is ignored unless `deliver` is set, because senders put their default channel
 * into every request.
 */
function checkPlaceOf({ deliver, channel, to }: AgentBody): Result<void> {
  if (deliver !== true || channel === undefined || channel === WEBCHAT) return ok(undefined);
  if (channel === LAST && to !== undefined) return wrong('channel "last" names its place itself, without to');
  if (channel !== LAST && to === undefined) return wrong("to is required with a channel: it names the chat");
  return ok(undefined);
}

export function readWakeBody(body: unknown): Promise<Result<BodyOf<"POST /hooks/wake">>> {
  return fieldsOf("POST /hooks/wake", body);
}

type Headers = (name: string) => string | undefined;

/** Returns the delivery id, which the sender repeats when it retries, or undefined if there is none. */
export function deliveryOf(
  mapping: HookMapping | undefined,
  header: Headers,
  body: unknown,
): Result<string | undefined> {
  const { preset, deliveryHeader = "x-delivery-id" } = mapping ?? {};
  if (preset === "github") {
    const id = checkedKey("X-GitHub-Delivery", header("x-github-delivery"));
    return id.ok && id.value === undefined
      ? wrong("the header X-GitHub-Delivery is missing; GitHub sends it")
      : id;
  }
  const own = preset === "hmac" ? header(deliveryHeader) : undefined;
  if (own !== undefined) return checkedKey(deliveryHeader, own);
  const general = header("idempotency-key");
  if (general !== undefined) return checkedKey("Idempotency-Key", general);
  const inBody = isObject(body) && Object.hasOwn(body, "idempotencyKey") ? body.idempotencyKey : undefined;
  if (inBody === undefined || inBody === null) return ok(undefined);
  return typeof inBody === "string"
    ? checkedKey("idempotencyKey", inBody)
    : wrong("idempotencyKey must be a string");
}

/** Returns the name of GitHub's event, from its header. */
export function githubEvent(header: Headers): Result<string> {
  const event = header("x-github-event") ?? "";
  return GITHUB_EVENT.test(event)
    ? ok(event)
    : wrong("the header X-GitHub-Event is missing or has no event name");
}

export function startsRun(events: readonly string[], event: string, body: unknown): boolean {
  const action = isObject(body) && typeof body.action === "string" ? body.action : "";
  return events.length === 0 || events.includes(event) || events.includes(`${event}.${action}`);
}
