// Passes the questions of an MCP server on to people (elicitation), as permission requests of the run whose
// call the server is answering.
// - The answer goes to the server only. Nobody in time, an ended run, or a caller without a run: `cancel`.
// - A server's text is untrusted: it is shown as this server's, cut, made visible, and its known secrets are
//   redacted. An address is shown whole, with the host that would be contacted.

import type { ElicitResult } from "@modelcontextprotocol/client";
import { textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { describeField, readForm } from "../../core/rules/approval/form.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ServerQuestion } from "../../core/shapes/permission.ts";
import type { Engine } from "../../engine/engine.ts";
import { closePermission, openPermission, type PermissionRequest } from "../../flows/permission.ts";
import { ELICITATION } from "../../store/queries/permissions.ts";
import type { RunContext } from "../tool.ts";
import { type Mask, plainWords } from "./plain-text.ts";
import type { OutsideWorld } from "./transport.ts";

const MESSAGE_MAX_CHARS = 1_000;
const URL_MAX_CHARS = 1_000;

/** The parts of a call's context that questions need. Without a run and its engine, nobody is asked. */
export interface AskingContext extends Pick<RunContext, "signal" | "wait" | "run"> {
  readonly engine?: Pick<Engine, "commit">;
}

/** Answers a server during one call. */
export interface Asker {
  /** The session that calls. Absent: it is not a run. */
  readonly sessionKey: string | undefined;
  /** Fails if the question is not valid. */
  elicit(params: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Result<ElicitResult>>;
}

/** Reads the question of a server, and describes what it wants besides its message. */
function readQuestion(
  server: string,
  params: Readonly<Record<string, unknown>>,
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
  readonly log: OutsideWorld["log"];
}

/** Creates the answers for one call of a server's tool. */
export function askerFor({ run, wait, engine }: AskingContext, parts: AskingParts): Asker {
  const { server, mask, log, askSeconds } = parts;
  /** Resolves with the decision. Undefined: nobody decided. */
  async function decide(
    request: Pick<PermissionRequest, "title" | "kind" | "rawInput" | "scopes" | "form">,
    signal: AbortSignal,
  ) {
    if (run === undefined || wait === undefined || engine === undefined || signal.aborted) return undefined;
    const { sessionKey, agentId, runId, attempt } = run;
    const opened = await engine.commit(async (unit) => {
      if (!(await wait.holds(unit))) return undefined;
      return openPermission(unit, {
        ...request,
        sessionKey,
        agentId,
        runId,
        attempt,
        askMs: askSeconds * 1_000,
      });
    });
    if (opened?.ok === false)
      log.warn({ server, why: opened.error }, "a question of an MCP server was not asked");
    if (!opened?.ok) return undefined;
    const question = opened.value;
    const decided = await wait.waitForDecision(question, signal);
    const closed = engine.commit((unit) => closePermission(unit, question));
    closed.catch((error: unknown) => log.debug({ err: error }, "a permission request could not be deleted"));
    // The wait can be long, so another process may have the run by now.
    return decided === undefined || decided.by === "" || !(await wait.mayAct(signal)) ? undefined : decided;
  }
  return {
    sessionKey: run?.sessionKey,
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
  };
}
