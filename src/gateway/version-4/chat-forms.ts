// Translates what clients of version 4 need to hold a chat: agents, messages, and permission requests.

import type { EventPayloads } from "../../contract/events.ts";
import type { PayloadOf } from "../../contract/methods.ts";
import type { Fields } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { PermissionAnswered, PermissionQuestion } from "../../core/shapes/permission.ts";
import type { Form } from "./form.ts";

/** Tells the client which of its inputs are in the transcript ("consumed"), and which are still queued. */
function receiptsOf({ messages, now }: PayloadOf<"chat.history">, runIds: readonly unknown[]): Fields[] {
  return runIds.flatMap((runId): Fields[] => {
    const input = messages.find((message) => message.role === "user" && message.runId === runId);
    if (input !== undefined) return [{ runId, state: "consumed", consumedByEventId: input.id }];
    return now?.queue.some((run) => run.runId === runId) === true ? [{ runId, state: "pending" }] : [];
  });
}

/**
 * Returns the fields by which the client knows that a message that it sent, a live event and a message of the
 * history are the same one. Without them it shows the message twice.
 */
export function identityShown(message: Message, runId: string | undefined) {
  const isInput = message.role === "user" && message.steered !== true && runId !== undefined;
  return {
    ...(isInput ? { idempotencyKey: `${runId}:user` } : {}),
    __openclaw: { id: message.id, ...optional({ runId }) },
  };
}

const messagesShown = ({ messages }: PayloadOf<"chat.history">): Fields[] =>
  messages.map((message) => ({ ...message, ...identityShown(message, message.runId) }));

/** The client keeps an input as unsent until it is in `inputReceipts`. */
const withReceipts = <M extends "chat.history" | "chat.startup">(method: M): Form<M> => ({
  method,
  params: ({ inputRunIds: _, ...rest }) => ok({ ...rest, includeRuns: true }),
  payload: (page, { inputRunIds }) => ({
    ...page,
    messages: messagesShown(page),
    ...(Array.isArray(inputRunIds) ? { inputReceipts: receiptsOf(page, inputRunIds) } : {}),
  }),
});
export const historyWithReceipts = withReceipts("chat.history");
export const startupWithReceipts = withReceipts("chat.startup");

/** Agents whose models are objects there: their web page offers no chat with an agent without a model. */
export const agents: Form<"agents.list"> = {
  method: "agents.list",
  payload: (page) => ({
    ...page,
    agents: page.agents.map(({ model, ...agent }) => ({ ...agent, model: { primary: model } })),
  }),
};

export const newestMessages: Form<"chat.history"> = {
  method: "chat.history",
  params: ({ key, sessionKey = key, ...rest }) => ok({ ...rest, sessionKey, includeRuns: true }),
  payload: (page) => ({ messages: messagesShown(page) }),
};

/** Every client gets the events of a session without asking, so a subscription changes nothing. */
export const messageEvents: Form<"sessions.describe"> = {
  method: "sessions.describe",
  params: ({ key }) => ok({ key }),
  payload: ({ session }, { key }) => ({ subscribed: session !== null, key: session?.key ?? key }),
};

/** Returns a permission request in its form of version 4: the command is its title, with its arguments. */
export function approvalShown(question: PermissionQuestion): EventPayloads["exec.approval.requested"] {
  const { id, title, detail, agentId, sessionKey, askedAt, expiresAt } = question;
  const command = detail === undefined ? title : `${title}\n${detail}`;
  const request = { command, agentId, sessionKey };
  return { id, request, createdAtMs: askedAt, expiresAtMs: expiresAt };
}

/** Returns the answer to a request in its form of version 4. */
export function decisionShown({ decision, scope }: Pick<PermissionAnswered, "decision" | "scope">) {
  if (decision === "deny") return "deny";
  return scope === "once" ? "allow-once" : "allow-always";
}

export const approvals: Form<"permissions.list"> = {
  method: "permissions.list",
  payload: ({ permissions }) => permissions.map(approvalShown),
};

const DECISIONS: Readonly<Record<string, Fields>> = {
  "allow-once": { decision: "allow", scope: "once" },
  "allow-always": { decision: "allow", scope: "always" },
  deny: { decision: "deny" },
};

export const approval: Form<"permissions.answer"> = {
  method: "permissions.answer",
  params({ id, decision, idempotencyKey }) {
    const answer = typeof decision === "string" && Object.hasOwn(DECISIONS, decision) && DECISIONS[decision];
    if (!answer) {
      return fail("invalid_argument", `decision must be one of ${Object.keys(DECISIONS).join(", ")}`);
    }
    return ok({ id, ...answer, ...optional({ idempotencyKey }) });
  },
};
