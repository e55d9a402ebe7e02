// Asks the editor for the permissions that one of its sessions, or a session that this one spawned, needs.
// The first answer counts, wherever it comes from: a request that has ended is withdrawn from the editor. An
// editor that gives no answer leaves the request to the inbox.

import type {
  AgentContext,
  PermissionOption,
  RequestPermissionRequest,
  SessionUpdate,
  ToolCall,
} from "@agentclientprotocol/sdk/unstable";
import { Approvals } from "../../../cli/chat/approvals.ts";
import type { Link } from "../../../cli/gateway-link.ts";
import type { PermissionQuestion, PermissionScope } from "../../../core/shapes/permission.ts";

const DENY = "deny";
const ALLOW: Readonly<Record<PermissionScope, Omit<PermissionOption, "optionId">>> = {
  once: { name: "Allow once", kind: "allow_once" },
  chain: { name: "Allow in this chain", kind: "allow_always" },
  session: { name: "Allow in this session", kind: "allow_always" },
  always: { name: "Always allow", kind: "allow_always" },
};

/** The editor's side of one session. */
export interface Asked {
  readonly sessionId: string;
  readonly client: AgentContext;
  send(update: SessionUpdate): void;
  /** Returns the id of the call in progress that a request is about, if the editor knows the call. */
  callOf(question: PermissionQuestion): string | undefined;
  note(text: string): void;
}

function optionsOf({ scopes }: PermissionQuestion): PermissionOption[] {
  const allowing = scopes.map((scope) => ({ optionId: scope, ...ALLOW[scope] }));
  return [...allowing, { optionId: DENY, name: "Deny", kind: "reject_once" }];
}

/** Shows all of the request, because the title of the call in the editor may be shortened. */
function shownCall(
  toolCallId: string,
  { title, detail, asked }: PermissionQuestion,
  from: string,
): Pick<ToolCall, "toolCallId" | "title" | "content" | "kind"> {
  const lines = asked === undefined ? [title, detail] : [asked.command, `in ${asked.folder}`, asked.reason];
  const text = [from, ...lines].filter((line) => line !== undefined && line !== "").join("\n");
  const content: ToolCall["content"] = [{ type: "content", content: { type: "text", text } }];
  return { toolCallId, title, content, ...(asked === undefined ? {} : { kind: "execute" }) };
}

export class EditorPermissions {
  readonly #link: Link;
  readonly #sessionKey: string;
  readonly #asked: Asked;
  readonly #approvals: Approvals;
  /** The requests that the editor was asked for and that are still open. */
  readonly #open = new Map<string, AbortController>();
  #reading: Promise<void> = Promise.resolve();

  constructor(link: Link, sessionKey: string, asked: Asked) {
    this.#link = link;
    this.#sessionKey = sessionKey;
    this.#asked = asked;
    this.#approvals = new Approvals(link, sessionKey);
  }

  /** Reads the open requests: asks for new ones, and withdraws those that have ended. */
  read(): Promise<void> {
    this.#reading = this.#reading.then(async () => {
      const open = await this.#approvals.open();
      if (open === undefined) return;
      for (const [id] of this.#open) if (!open.some((one) => one.id === id)) this.#withdraw(id);
      for (const question of open) if (!this.#open.has(question.id)) void this.#ask(question);
    });
    return this.#reading;
  }

  /** Reads them if one was asked for, so that its end is told before the end of its run. */
  async settle(): Promise<void> {
    if (this.#open.size > 0) await this.read();
  }

  end(): void {
    for (const [id] of this.#open) this.#withdraw(id);
  }

  #withdraw(id: string): void {
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  async #ask(question: PermissionQuestion): Promise<void> {
    const { client, sessionId, send, note } = this.#asked;
    const withdrawn = new AbortController();
    this.#open.set(question.id, withdrawn);
    const known = this.#asked.callOf(question);
    const isOwn = question.sessionKey === this.#sessionKey;
    const from = isOwn ? "" : `Session ${question.sessionKey} asks:`;
    const toolCall = shownCall(known ?? `permission:${question.id}`, question, from);
    const { toolCallId } = toolCall;
    if (known === undefined) send({ sessionUpdate: "tool_call", status: "pending", ...toolCall });
    // The call of its own ends with its question, before the editor can hear that the run has ended.
    const endCall = (): void => {
      if (known === undefined) send({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
    };
    withdrawn.signal.addEventListener("abort", endCall, { once: true });
    try {
      const request: RequestPermissionRequest = { sessionId, toolCall, options: optionsOf(question) };
      const until = { cancellationSignal: withdrawn.signal, stopWaitingOnCancel: true };
      const { outcome } = await client.request("session/request_permission", request, until);
      if (outcome.outcome === "selected") await this.#answer(question, outcome.optionId);
    } catch (error) {
      // An editor that does not ask its user leaves the request to the inbox.
      if (!withdrawn.signal.aborted) note(`The editor did not answer a permission request: ${error}`);
    }
  }

  async #answer({ id, scopes }: PermissionQuestion, optionId: string): Promise<void> {
    const scope = scopes.find((one) => one === optionId);
    const decision = scope === undefined ? ("deny" as const) : ("allow" as const);
    const answered = await this.#link.request("permissions.answer", { id, decision, scope });
    if (answered.ok || answered.code === "permission_not_found") return;
    this.#asked.note(answered.error);
    // The request is still open, so the next look asks again.
    this.#withdraw(id);
  }
}
