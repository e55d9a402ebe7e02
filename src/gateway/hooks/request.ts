// Parses the bodies of web hooks, and finds the delivery id of a request.
// A refusal names the unknown field, or the expected type of a wrong one.

import { isObject } from "../../core/json.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { HookProof } from "../../core/shapes/incoming-hook.ts";
import { LAST, WEBCHAT } from "../../core/shapes/route.ts";
import { quoted } from "../../core/text/cut.ts";
import { checkedKey } from "../http/request.ts";

type Body = Readonly<Record<string, unknown>>;

const AGENT_FIELDS: Readonly<Record<string, "string" | "boolean" | "number">> = {
  message: "string",
  name: "string",
  agentId: "string",
  sessionKey: "string",
  deliver: "boolean",
  channel: "string",
  to: "string",
  accountId: "string",
  threadId: "string",
  model: "string",
  thinking: "string",
  timeoutSeconds: "number",
  idempotencyKey: "string",
};
const WAKE_FIELDS = { text: "string", mode: "string", idempotencyKey: "string" } as const;
const WAKE_MODES = ["now", "next-heartbeat"] as const;
/** Characters of every text except the message. */
const NAME_CHARS_MAX = 512;
const GITHUB_EVENT = /^[a-z0-9_]{1,64}$/;

interface AgentBody {
  readonly message: string;
  readonly name?: string;
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly deliver?: boolean;
  readonly channel?: string;
  readonly to?: string;
  readonly accountId?: string;
  readonly threadId?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly timeoutSeconds?: number;
  readonly idempotencyKey?: string;
}

interface WakeBody {
  readonly text: string;
  readonly mode: (typeof WAKE_MODES)[number];
  readonly idempotencyKey?: string;
}

function wrong(text: string): Failure {
  return fail("invalid_argument", text);
}

/** Returns the fields of a body, each of its type; null fields are left out. */
function fieldsOf(body: unknown, kinds: Readonly<Record<string, string>>, main: string): Result<Body> {
  if (!isObject(body)) return wrong("the body must be one JSON object");
  const given = Object.entries(body).filter(([, value]) => value !== null);
  for (const [name, value] of given) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined) {
      return fail("unknown_argument", `unknown field ${quoted(name, 60)}`, {
        hint: `A body takes: ${Object.keys(kinds).join(", ")}.`,
      });
    }
    if (typeof value !== kind) return wrong(`${name} must be a ${kind}`);
    if (name === main || typeof value !== "string") continue;
    if (value === "") return wrong(`${name} must not be empty`);
    if (value.length > NAME_CHARS_MAX) return wrong(`${name} has more than ${NAME_CHARS_MAX} characters`);
    if (!value.isWellFormed()) return wrong(`${name} contains an unpaired surrogate`);
  }
  const fields = Object.fromEntries(given);
  if (!Object.hasOwn(fields, main)) return wrong(`${main} is required: it is the message to the agent`);
  return ok(fields);
}

export function readAgentBody(body: unknown): Result<AgentBody> {
  const fields = fieldsOf(body, AGENT_FIELDS, "message");
  if (!fields.ok) return fields;
  const read = fields.value as unknown as AgentBody;
  if (read.deliver !== true && read.to !== undefined) return wrong("to requires deliver: true");
  const place = checkPlaceOf(read);
  if (!place.ok) return place;
  if ((read.timeoutSeconds ?? 0) < 0) return wrong("timeoutSeconds must not be less than 0");
  return ok(read);
}

/**
 * Checks the destination. Senders name their own default channel in every request, so without `deliver` it is
 * ignored.
 */
function checkPlaceOf({ deliver, channel, to }: AgentBody): Result<void> {
  if (deliver !== true || channel === undefined || channel === WEBCHAT) return ok(undefined);
  if (channel === LAST && to !== undefined) return wrong('channel "last" names its place itself, without to');
  if (channel !== LAST && to === undefined) return wrong("to is required with a channel: it names the chat");
  return ok(undefined);
}

export function readWakeBody(body: unknown): Result<WakeBody> {
  const fields = fieldsOf(body, WAKE_FIELDS, "text");
  if (!fields.ok) return fields;
  const { mode = "now", ...rest } = fields.value;
  const known = WAKE_MODES.find((one) => one === mode);
  if (known === undefined) return wrong(`mode must be one of ${WAKE_MODES.join(", ")}`);
  return ok({ ...(rest as unknown as WakeBody), mode: known });
}

type Headers = (name: string) => string | undefined;

/** Returns the delivery id, which the sender repeats when it retries; undefined: it gives none. */
export function deliveryOf(proof: HookProof, header: Headers, body: unknown): Result<string | undefined> {
  if (proof.kind === "github") {
    const id = checkedKey("X-GitHub-Delivery", header("x-github-delivery"));
    return id.ok && id.value === undefined
      ? wrong("the header X-GitHub-Delivery is missing; GitHub sends it")
      : id;
  }
  const own = proof.kind === "hmac" ? header(proof.deliveryHeader) : undefined;
  if (own !== undefined && proof.kind === "hmac") return checkedKey(proof.deliveryHeader, own);
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

/** Whether this event starts a run. */
export function startsRun(events: readonly string[], event: string, body: unknown): boolean {
  const action = isObject(body) && typeof body.action === "string" ? body.action : "";
  return events.length === 0 || events.includes(event) || events.includes(`${event}.${action}`);
}
