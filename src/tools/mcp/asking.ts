// Passes the questions of an MCP server on to people (elicitation), as permission requests of the run whose
// call the server is answering, and its requests to the run's model (sampling), if an owner allows them. A
// client that waits for the run can answer with a model of its own.
// - The answer goes to the server only. Nobody in time, an ended run, or a caller without a run: `cancel`.
// - A server's text is untrusted: it is shown as this server's, cut, made visible, and its known secrets are
//   redacted. An address is shown whole, with the host that would be contacted.

import type { CreateMessageResult, ElicitResult } from "@modelcontextprotocol/client";
import type { AskAside } from "../../agent/model/model.ts";
import { countOf, type Fields, fieldsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { describeField, readForm } from "../../core/rules/approval/form.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { injectedMessage, type Message, textOf as saidBy } from "../../core/shapes/message.ts";
import type { ServerPrompt, ServerQuestion } from "../../core/shapes/permission.ts";
import type { Engine } from "../../engine/engine.ts";
import { askPermission, type PermissionRequest } from "../../flows/permission.ts";
import { ELICITATION, SAMPLING } from "../../store/queries/permissions.ts";
import type { RunContext } from "../tool.ts";
import { type Mask, plainWords } from "./plain-text.ts";
import type { OutsideWorld } from "./transport.ts";

const MESSAGE_MAX_CHARS = 1_000;
const URL_MAX_CHARS = 1_000;
/** Maximum number of messages of a request to the model, and of tokens of its answer. */
const MESSAGES_MAX = 50;
const SAMPLED_MAX_TOKENS = 4_096;

/** The parts of a call's context that questions need. Without a run and its engine, nobody is asked. */
export interface AskingContext extends Pick<RunContext, "signal" | "wait" | "run"> {
  readonly engine?: Pick<Engine, "commit">;
  /** Asks the run's model. Absent if the run has none here. */
  readonly askAside?: AskAside | undefined;
}

/** Answers a server during one call. */
export interface Asker {
  /** The run that calls. Absent: it is not a run. */
  readonly runId: string | undefined;
  /** Fails if the question is not valid. */
  elicit(params: Fields, signal: AbortSignal): Promise<Result<ElicitResult>>;
  /** Fails with `approval_denied` if no owner allows it, or the model does not answer. */
  sample(params: Fields, signal: AbortSignal): Promise<Result<CreateMessageResult>>;
}

/** Reads a request to the model. Everything but texts is refused. */
function readPrompt(params: Fields, mask: Mask): Result<ServerPrompt> {
  const wrong = (text: string) => fail("invalid_argument", text);
  const { messages, systemPrompt = "", maxTokens, includeContext = "none", tools, toolChoice } = params;
  const most = countOf(maxTokens) ?? 0;
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > MESSAGES_MAX)
    return wrong(`messages must have 1 to ${MESSAGES_MAX} entries`);
  if (typeof systemPrompt !== "string" || most === 0) return wrong("systemPrompt or maxTokens is wrong");
  if (includeContext !== "none") return wrong("includeContext is not supported");
  if (tools !== undefined || toolChoice !== undefined) return wrong("tools are not supported");
  const read: ServerPrompt["messages"][number][] = [];
  for (const message of messages) {
    const { role, content } = fieldsOf(message);
    const blocks = (Array.isArray(content) ? content : [content]).map(fieldsOf);
    if (role !== "user" && role !== "assistant") return wrong("a message has a wrong role");
    if (!blocks.every(({ type, text }) => type === "text" && typeof text === "string"))
      return wrong("only messages with text are supported");
    read.push({ role, text: mask(blocks.map(({ text }) => text).join("\n")) });
  }
  const maxOutputTokens = Math.min(most, SAMPLED_MAX_TOKENS);
  return ok({ system: mask(systemPrompt), messages: read, maxOutputTokens });
}

/** Reads the question of a server, and describes what it wants besides its message. */
function readQuestion(
  server: string,
  params: Fields,
  mask: Mask,
): Result<{ readonly form: ServerQuestion; readonly detail?: string }> {
  if (params.mode === "url") {
    const address = typeof params.url === "string" ? URL.parse(params.url) : null;
    if (address === null || !/^https?:$/.test(address.protocol) || address.href.length > URL_MAX_CHARS)
      return fail(
        "invalid_argument",
        `the url is no address with http or https and up to ${URL_MAX_CHARS} characters`,
      );
    const { href: url, host } = address;
    if (address.username !== "" || address.password !== "")
      return fail("invalid_argument", "the url has a user name or a password");
    return ok({
      form: { server, fields: [], url },
      detail: `Open this address of ${host} yourself, if you trust it: ${url}`,
    });
  }
  const fields = readForm(params.requestedSchema, mask);
  if (!fields.ok) return fields;
  const form = { server, fields: fields.value };
  const lines = fields.value.map(describeField);
  return ok({
    form,
    ...optional({ detail: lines.length === 0 ? undefined : `Fields: ${lines.join(" · ")}` }),
  });
}

export interface AskingParts {
  readonly server: string;
  readonly mask: Mask;
  readonly askSeconds: number;
  readonly world: Pick<OutsideWorld, "clock" | "ids" | "log">;
}

/** Creates the answers for one call of a server's tool. */
export function askerFor({ run, wait, engine, askAside }: AskingContext, parts: AskingParts): Asker {
  const { server, mask, world, askSeconds } = parts;
  const { log } = world;
  /** Resolves with the decision. Undefined: nobody decided. */
  async function decide(
    request: Pick<PermissionRequest, "title" | "kind" | "rawInput" | "scopes" | "form" | "prompt">,
    signal: AbortSignal,
  ) {
    if (run === undefined || wait === undefined || engine === undefined) return undefined;
    const { sessionKey, agentId, runId, attempt } = run;
    const of = { sessionKey, agentId, runId, attempt, askMs: askSeconds * 1_000 };
    const decided = await askPermission(
      { engine },
      { ...request, ...of },
      { wait, signal, log, keepsSlot: false },
    );
    // The wait can be long, so another process may have the run by now.
    return decided === undefined || !(await wait.mayAct(signal)) ? undefined : decided;
  }
  return {
    runId: run?.runId,
    async elicit(params, signal) {
      const read = readQuestion(server, params, mask);
      if (!read.ok) return read;
      const { form, detail } = read.value;
      const message = plainWords(mask(textOf(params.message) ?? ""), MESSAGE_MAX_CHARS);
      const decided = await decide(
        {
          title: `MCP server ${server} asks: ${message}`,
          kind: ELICITATION,
          rawInput: detail,
          scopes: form.fields.length === 0 ? ["once"] : [],
          form,
        },
        signal,
      );
      if (decided === undefined) return ok({ action: "cancel" });
      if (decided.decision === "deny") return ok({ action: "decline" });
      const content =
        form.url === undefined ? ((decided.content ?? {}) as ElicitResult["content"]) : undefined;
      return ok({ action: "accept", ...optional({ content }) });
    },
    async sample(params, signal) {
      const read = readPrompt(params, mask);
      if (!read.ok) return read;
      const { system, messages, maxOutputTokens } = read.value;
      const lines = messages.map(({ role, text }) => `${role}: ${text}`);
      const first = system === "" ? [] : [`system: ${system}`];
      const rejectCall = (why: string) => fail("approval_denied", why);
      if (askAside === undefined) return rejectCall("No model can answer during this call");
      const decided = await decide(
        {
          title: `MCP server ${server} asks your model for an answer`,
          kind: SAMPLING,
          rawInput: [`maxTokens: ${maxOutputTokens}`, ...first, ...lines].join("\n"),
          prompt: read.value,
        },
        signal,
      );
      if (decided?.decision !== "allow") return rejectCall("User rejected sampling request");
      const { text: given, model: answerer } = decided.content ?? {};
      if (typeof given === "string")
        return ok({ role: "assistant", content: { type: "text", text: given }, model: String(answerer) });
      const at = world.clock.now();
      const entries = messages.map(({ role, text }): Message => {
        const id = world.ids.uuid();
        if (role === "assistant") return injectedMessage(id, text, at);
        return { id, role, content: [{ type: "text", text }], timestamp: at };
      });
      const outcome = await askAside({ system, entries, maxOutputTokens }, signal);
      if (outcome.kind === "aborted") return rejectCall("The call has ended");
      if (outcome.kind !== "message") {
        log.warn({ server, why: outcome.error }, "a model did not answer an MCP server");
        return rejectCall("The model did not answer");
      }
      const { message } = outcome;
      const stopReason = message.stopReason === "length" ? "maxTokens" : "endTurn";
      const content = { type: "text" as const, text: saidBy({ ...message, id: "" }) };
      return ok({ role: "assistant", content, model: message.model, stopReason });
    },
  };
}
