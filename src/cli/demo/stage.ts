// Shows the demo in the terminal. Each line comes from an event of the gateway; no line is scripted.

import type { AgentEvent, ChatEvent, FlowData } from "../../contract/events.ts";
import type { EventFrame } from "../../contract/frames.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import type { Message } from "../../core/shapes/message.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import type { Cli, Style } from "../cli.ts";
import type { Link } from "../gateway-link.ts";
import { excerpt, wrap } from "../layout.ts";
import { turnLabel } from "../message-lines.ts";

const WIDTH_DEFAULT = 120;
const INDENT = "    ";
const NAME_WIDTH = 18;
const TEXT_CHARS_MIN = 40;
const HISTORY_LIMIT = 200;

/** Shortens a session key: `research` for `agent:research:main`, `job 1a2b` for a sub-agent. */
function nameOf(key: string): string {
  const job = /^agent:[^:]+:subagent:([^:]{4})/.exec(key)?.[1];
  return job === undefined ? (/^agent:([^:]+):main$/.exec(key)?.[1] ?? key) : `job ${job}`;
}

export function keyOf(agent: string): string {
  return `agent:${agent}:main`;
}

type JsonObject = Record<string, unknown>;

export class Stage {
  readonly #cli: Cli;
  readonly #link: Link;
  readonly #frames: EventFrame[] = [];
  readonly #asked = new Set<string>();
  #wake: () => void = () => {};

  constructor(cli: Cli, link: Link) {
    this.#cli = cli;
    this.#link = link;
    link.client.onEvent((frame) => {
      this.#frames.push(frame);
      this.#show(frame);
      this.#wake();
    });
  }

  /** Sends a message and waits for the agent's answer. */
  async ask(agent: string, message: string, withinMs: number): Promise<ChatEvent> {
    const runId = this.#cli.parts.world.ids.orderedUuid();
    this.#asked.add(runId);
    this.#line("cyan", `you → ${agent}`, message);
    const sent = await this.#link.request("chat.send", {
      sessionKey: keyOf(agent),
      message,
      idempotencyKey: runId,
    });
    if (!sent.ok) throw new DemoFailure(`chat.send was refused: ${sent.error}`);
    const frame = await this.until(`${agent} has answered`, withinMs, ({ event, payload }) => {
      const chat = payload as ChatEvent;
      return (
        event === "chat" && chat.runId === runId && chat.state !== "delta" && chat.stopReason !== "delivered"
      );
    });
    return frame.payload as ChatEvent;
  }

  /** Resolves with the first event for which `fits` returns true. It may have arrived before the call. */
  async until(what: string, withinMs: number, fits: (frame: EventFrame) => boolean): Promise<EventFrame> {
    const { clock } = this.#cli.parts.world;
    let late = false;
    const timer = clock.after(withinMs, () => {
      late = true;
      this.#wake();
    });
    try {
      for (let at = 0; ; ) {
        const frame = this.#frames[at];
        if (frame !== undefined && fits(frame)) return frame;
        if (frame !== undefined) at++;
        else if (late) throw new DemoFailure(`timed out after ${withinMs / 1000} s; expected: ${what}`);
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      timer.cancel();
    }
  }

  /** Returns the steps of the conversations between two agents so far, without duplicates. */
  conversation(from: string, to: string): FlowData[] {
    return this.#frames.flatMap(({ event, payload }) => {
      const agent = payload as AgentEvent;
      if (event !== "agent" || agent.stream !== "flow" || agent.sessionKey !== agent.data.from) return [];
      const parties = [agent.data.from, agent.data.to];
      return parties.includes(keyOf(from)) && parties.includes(keyOf(to)) ? [agent.data] : [];
    });
  }

  /** Returns the monotonic time in milliseconds. */
  now(): number {
    return this.#cli.parts.world.clock.monotonic();
  }

  /** Returns whether this run answers a message of the user. */
  wasAsked(runId: string): boolean {
    return this.#asked.has(runId);
  }

  /** Calls a tool as a session, with that session's rights. */
  async invokeAs(sessionKey: string, name: string, args: JsonObject): Promise<JsonObject> {
    const called = await this.#link.request("tools.invoke", { name, arguments: args, sessionKey });
    if (!called.ok) throw new DemoFailure(`tools.invoke was refused: ${called.error}`);
    this.#line("yellow", `${nameOf(sessionKey)} calls`, `${name} ${JSON.stringify(args)}`);
    this.#showRefusal(nameOf(sessionKey), called.value);
    return called.value;
  }

  async transcript(agent: string): Promise<readonly Message[]> {
    const params = { sessionKey: keyOf(agent), limit: HISTORY_LIMIT };
    const page = await this.#link.request("chat.history", params);
    if (!page.ok) throw new DemoFailure(`chat.history was refused: ${page.error}`);
    return page.value.messages;
  }

  /** Returns the last result of a tool in an agent's transcript. */
  async result(agent: string, tool: string): Promise<JsonObject> {
    const messages = await this.transcript(agent);
    const last = messages.findLast((message) => message.role === "toolResult" && message.toolName === tool);
    const text = last?.content[0]?.type === "text" ? last.content[0].text : "";
    const value = jsonOf(text);
    return isObject(value) ? value : {};
  }

  /** Prints a line, cut to the width of the terminal. With `whole`, wraps the text instead of cutting it. */
  #line(style: Style, who: string, what: string, whole = false): void {
    const { columns } = this.#cli.parts.stdout as { columns?: number };
    const room = Math.max(TEXT_CHARS_MIN, (columns ?? WIDTH_DEFAULT) - INDENT.length - NAME_WIDTH - 1);
    const [first = "", ...rest] = whole ? wrap(what, room) : [excerpt(what, room)];
    this.#cli.line(`${INDENT}${this.#cli.style(style, who.padEnd(NAME_WIDTH))} ${first}`);
    for (const line of rest) this.#cli.line(`${" ".repeat(INDENT.length + NAME_WIDTH + 1)}${line}`);
  }

  #show({ event, payload }: EventFrame): void {
    if (event === "chat") this.#showChat(payload as ChatEvent);
    if (event !== "agent") return;
    const agent = payload as AgentEvent;
    const who = nameOf(agent.sessionKey);
    if (agent.stream === "flow" && agent.data.from === agent.sessionKey) this.#showFlow(agent.data);
    if (agent.stream !== "tool") return;
    const { data } = agent;
    // A call of sessions_send is shown only when its message is accepted, by the flow event.
    if (data.phase === "start" && data.name !== "sessions_send") {
      this.#line("yellow", `${who} calls`, `${data.name} ${JSON.stringify(data.args ?? {})}`);
    }
    const result = data.phase === "result" ? jsonOf(data.result ?? "") : undefined;
    if (!isObject(result)) return;
    this.#showRefusal(who, result);
    if (result.status === "timeout") this.#line("yellow", `${who} stops waiting`, String(result.error));
  }

  #showRefusal(who: string, result: JsonObject): void {
    if (result.status !== "forbidden" && result.status !== "error") return;
    this.#line("red", `${who} is refused`, `${result.code}: ${result.error}`, true);
  }

  #showChat(chat: ChatEvent): void {
    const text = chat.message?.content.map((block) => block.text).join("\n") ?? "";
    const who = nameOf(chat.sessionKey);
    if (chat.state === "delta") return;
    if (chat.stopReason === "delivered") this.#line("blue", `${who} ⇒ webchat`, text);
    else if (!this.#asked.has(chat.runId)) return;
    else if (chat.state === "final") this.#line("green", `${who} → you`, text);
    else this.#line("red", `${who} → you`, chat.errorMessage ?? chat.state);
  }

  #showFlow({ step, from, to, text, turn, turnsMax, reason }: FlowData): void {
    const way = `${nameOf(from)} → ${nameOf(to)}`;
    if (step === "round1") this.#line("magenta", way, text);
    if (step === "reply") this.#line("magenta", way, `${turnLabel(turn, turnsMax)} ${text}`);
    if (step === "task") this.#line("magenta", way, text);
    // The event of the delivery shows a sub-agent's result.
    if (isSubagentKey(from)) return;
    if (step === "announce" && !isSilent(text))
      this.#line("dim", nameOf(to), "(announce step: it announces the result to its own people)");
    if (step === "ended") this.#line("dim", way, `(conversation over: ${reason ?? "done"})`);
  }
}

/** Thrown if a step of the demo fails its check. */
export class DemoFailure extends Error {}
