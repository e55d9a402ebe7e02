// Runs one conversation at the terminal: sends typed lines and shows the session's events. It continues when
// a lost connection is restored.
// Each message has one idempotency key, so a repeated send adds it only once. Events can be missed, so the
// new messages of the transcript are read after each run and each reconnect.

import type { AgentEvent, ChatEvent } from "../../contract/events.ts";
import { optional } from "../../core/optional.ts";
import { COMMANDS, parseCommand } from "../../core/rules/command.ts";
import type { Message, Provenance } from "../../core/shapes/message.ts";
import { retryWords } from "../../core/shapes/model-retry.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Cli, Trouble } from "../cli.ts";
import type { Link } from "../gateway-link.ts";
import { count } from "../layout.ts";
import { messageLines } from "../message-lines.ts";
import { TranscriptReader } from "./catch-up.ts";
import { subagentLines } from "./subagents.ts";
import { Terminal } from "./terminal.ts";
import { ChatView, type Op } from "./view.ts";

/** Number of earlier messages shown at the start. */
const SHOWN_BEFORE = 6;
const HISTORY_DEFAULT = 20;
const QUIT_WAIT_MS = 3_000;
const USAGE_COLUMNS = 13;
const HELP = [
  "/stop         stop the agent and its sub-agents (or press Ctrl-C while it works)",
  "/subagents    list the sub-agents of this session and their state",
  "/history [N]  show the last N messages (default: 20)",
  "/quit         leave the chat; running work continues (or press Ctrl-D)",
  "Commands of the gateway:",
  ...COMMANDS.filter(({ name }) => !["help", "stop"].includes(name)).map(
    ({ name, description }) => `${`/${name}`.padEnd(USAGE_COLUMNS)} ${description}`,
  ),
  "Every other line is sent to the agent.",
];

function isCommand(text: string): boolean {
  return parseCommand(text, { isOurs: () => false }) !== undefined;
}

/** Returns whether a message is a turn of a conversation with another session. */
function isTurn(provenance: Provenance | undefined): boolean {
  return provenance?.kind === "inter_session" && provenance.sourceTool === "sessions_send";
}

export interface ConversationEnd {
  /** All messages of the conversation with --json; otherwise empty. */
  readonly messages: readonly Message[];
  /** The failure that ended the conversation. Absent if the user or the end of the input ended it. */
  readonly trouble?: Trouble;
}

class Conversation {
  readonly #cli: Cli;
  readonly #link: Link;
  readonly #key: string;
  readonly #terminal: Terminal;
  readonly #view: ChatView;
  readonly #reader: TranscriptReader;
  readonly #messages: Message[] = [];
  /** Runs of this session that are in progress, according to the events so far. */
  readonly #active = new Set<string>();
  /** Requests that send a typed message and that the gateway has not answered yet. */
  readonly #sending = new Set<Promise<void>>();
  #reading: Promise<void> = Promise.resolve();
  #readAgain = false;
  /** The newest message, which is shown only when the events of its run arrive. */
  #unsettled: Message | undefined;
  #trouble: Trouble | undefined;
  #idle: () => void = () => {};
  #off: () => void = () => {};

  constructor(cli: Cli, link: Link, key: string) {
    this.#cli = cli;
    this.#link = link;
    this.#key = key;
    this.#terminal = new Terminal(cli);
    this.#view = new ChatView(key, cli);
    this.#reader = new TranscriptReader(link, key);
  }

  async run(fresh: boolean): Promise<ConversationEnd> {
    const { client } = this.#link;
    const off = [
      client.on("chat", (event) => this.#onChat(event)),
      client.on("agent", (event) => this.#onAgent(event)),
      client.onState((state, error) => {
        if (state === "connected") void this.#onBack();
        else if (state === "reconnecting") this.#tell("connection lost; reconnecting…");
        else
          this.#giveUp({
            code: error?.code ?? "CLOSED",
            error: error?.message ?? "the connection is closed",
          });
      }),
    ];
    try {
      await this.#begin(fresh);
      await this.#talk();
      await this.#runsEnded();
    } finally {
      for (const stop of [...off, this.#off]) stop();
      this.#terminal.close();
    }
    return { messages: this.#messages, ...optional({ trouble: this.#trouble }) };
  }

  async #begin(fresh: boolean): Promise<void> {
    const { server } = this.#link.client.hello;
    this.#tell(`${safeLine(this.#key)}, on Parley ${safeLine(server.version)}. /help lists the commands.`);
    const before = await this.#reader.begin(fresh ? 0 : SHOWN_BEFORE);
    if (!before.ok) return this.#giveUp(before);
    // The page may begin with results of tool calls that are not on it: skip these results.
    const from = before.value.findIndex((message) => message.role !== "toolResult");
    const lines = before.value
      .slice(Math.max(0, from))
      .flatMap((message) => messageLines(this.#cli, message));
    this.#terminal.show(lines.map((text) => ({ op: "line", text })));
  }

  async #talk(): Promise<void> {
    let interrupted = false;
    this.#off = this.#terminal.onInterrupt(() => {
      // The first Ctrl-C stops the agent. A second one leaves the chat, and so does one while no run is in
      // progress.
      if (this.#active.size === 0 || interrupted) return this.#leave();
      interrupted = true;
      void this.#stop().then(() => {
        interrupted = false;
      });
    });
    for await (const line of this.#terminal.lines()) {
      if (this.#trouble !== undefined) return;
      const text = line.trim();
      if (text === "") continue;
      if (text === "/quit" || text === "/exit") return this.#quit();
      if (text.startsWith("/")) await this.#command(text);
      else this.#send(text);
    }
  }

  /** Leaves after the gateway has accepted all typed messages. Waits at most a few seconds for that. */
  async #quit(): Promise<void> {
    const { clock } = this.#cli.parts.world;
    const late = Promise.withResolvers<void>();
    const timer = clock.at(clock.now() + QUIT_WAIT_MS, late.resolve, "alive");
    await Promise.race([Promise.all(this.#sending), late.promise]);
    timer.cancel();
    this.#leave();
  }

  #leave(): void {
    this.#active.clear();
    this.#idle();
    this.#terminal.close();
  }

  async #command(text: string): Promise<void> {
    const [name, argument] = text.split(/\s+/);
    switch (name) {
      case "/help":
        return this.#terminal.show(HELP.map((line) => ({ op: "line", text: this.#cli.style("dim", line) })));
      case "/stop":
        return this.#stop();
      case "/subagents":
        return argument === undefined ? this.#subagents() : this.#send(text);
      case "/history":
        return this.#history(Number(argument ?? HISTORY_DEFAULT));
      default:
        if (isCommand(text)) return this.#send(text);
        return this.#tell(`unknown command ${safeLine(name ?? "")}; /help lists the commands`);
    }
  }

  async #history(wanted: number): Promise<void> {
    if (!Number.isInteger(wanted) || wanted < 1)
      return this.#tell("/history needs a number, like /history 50");
    const params = { sessionKey: this.#key, limit: Math.min(wanted, 1000) };
    const page = await this.#link.request("chat.history", params);
    if (!page.ok) return this.#tell(safeLine(page.error));
    const lines = page.value.messages.flatMap((message) => messageLines(this.#cli, message));
    this.#terminal.show(lines.map((line): Op => ({ op: "line", text: line })));
  }

  #send(text: string): void {
    const sending = this.#say(text).finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  async #say(text: string): Promise<void> {
    const runId = this.#cli.parts.world.ids.orderedUuid();
    // The transcript does not contain a command, only the answer to it. So there is no copy to suppress
    // later.
    if (!isCommand(text)) this.#view.typed(text);
    this.#active.add(runId);
    const sent = await this.#link.request("chat.send", {
      sessionKey: this.#key,
      message: text,
      idempotencyKey: runId,
    });
    if (sent.ok) return;
    this.#tell(`not sent: ${safeLine(sent.error)}`);
    this.#ended(runId);
  }

  async #stop(): Promise<void> {
    const own = new Set(this.#active);
    const stopped = await this.#link.request("chat.abort", { sessionKey: this.#key });
    if (!stopped.ok) return this.#tell(`not stopped: ${safeLine(stopped.error)}`);
    const { aborted, runIds } = stopped.value;
    const below = runIds.filter((runId) => !own.has(runId)).length;
    if (!aborted && below === 0) this.#tell("nothing to stop");
    else if (below > 0)
      this.#tell(`also stopped: ${count(below, "run")} that waited or belonged to sub-agents`);
  }

  async #subagents(): Promise<void> {
    const listed = await this.#link.request("tools.invoke", { name: "subagents", sessionKey: this.#key });
    if (!listed.ok) return this.#tell(safeLine(listed.error));
    const lines = subagentLines(listed.value, this.#cli.parts.world.clock.now());
    this.#terminal.show(lines.map((line): Op => ({ op: "line", text: line })));
  }

  #onChat(event: ChatEvent): void {
    if (event.sessionKey !== this.#key) return;
    // A final text may belong to the run before the unsettled message. Every other event shows that this
    // message's own run is in progress.
    if (event.state !== "final") this.#showUnsettled();
    this.#terminal.show(this.#view.chat(event));
    if (event.state === "delta") return;
    void this.#readNew().then(() => this.#ended(event.runId));
  }

  #onAgent(event: AgentEvent): void {
    if (event.sessionKey !== this.#key) return;
    if (event.stream === "tool") {
      this.#showUnsettled();
      this.#terminal.show(this.#view.tool(event.data));
    }
    if (event.stream === "retry") this.#tell(safeLine(retryWords(event.data)));
    if (event.stream === "flow") this.#terminal.show(this.#view.flow(event.runId, event.data));
    if (event.stream !== "lifecycle") return;
    if (event.data.phase === "start") {
      this.#active.add(event.runId);
      this.#terminal.show(this.#view.started(event.runId));
    } else void this.#readNew().then(() => this.#ended(event.runId));
  }

  #ended(runId: string): void {
    this.#active.delete(runId);
    if (this.#active.size === 0) this.#idle();
  }

  /** Reads and shows new messages of the transcript. If a read is in progress, another read follows it. */
  #readNew(): Promise<void> {
    if (this.#readAgain) return this.#reading;
    this.#readAgain = true;
    this.#reading = this.#reading.then(async () => {
      this.#readAgain = false;
      const read = await this.#reader.readNew();
      if (!read.ok) return;
      const { messages, wasReset, gap } = read.value;
      if (wasReset) this.#tell("the session was reset");
      if (gap) this.#tell("some messages are not shown here; see /history");
      if (this.#cli.options.json) this.#messages.push(...messages);
      this.#settle(messages);
    });
    return this.#reading;
  }

  /**
   * Shows messages of the transcript. If the last one comes from another session, it is shown later: the
   * events of its run name the reply turn, and usually arrive just afterwards.
   */
  #settle(messages: readonly Message[]): void {
    const last = messages.at(-1);
    if (last === undefined) return;
    this.#showUnsettled();
    const waits = last.role === "user" && isTurn(last.provenance);
    this.#unsettled = waits ? last : undefined;
    this.#terminal.show(this.#view.settle(waits ? messages.slice(0, -1) : messages));
  }

  /** Shows the message that waits for the events of its run, if there is one. */
  #showUnsettled(): void {
    const message = this.#unsettled;
    if (message === undefined) return;
    this.#unsettled = undefined;
    this.#terminal.show(this.#view.settle([message]));
  }

  /** After a reconnect, shows missed messages and notes the runs that ended in the meantime. */
  async #onBack(): Promise<void> {
    this.#tell("reconnected");
    const waiting = [...this.#active];
    await this.#readNew();
    for (const runId of waiting) {
      const run = await this.#link.request("agent.wait", { runId, timeoutMs: 0 });
      if (!run.ok || run.value.status === "timeout") continue;
      await this.#readNew();
      this.#ended(runId);
    }
  }

  /** At the end of the input, waits for the runs in progress. */
  async #runsEnded(): Promise<void> {
    while (this.#active.size > 0 && this.#trouble === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      await promise;
    }
    await this.#reading;
    this.#showUnsettled();
  }

  #giveUp(trouble: Trouble): void {
    this.#trouble = trouble;
    this.#leave();
  }

  #tell(text: string): void {
    this.#terminal.show([{ op: "line", text: this.#cli.style("dim", `· ${text}`) }]);
  }
}

/** Runs a conversation until the input ends or the user leaves. `fresh`: the session has no messages yet. */
export function runConversation(
  cli: Cli,
  link: Link,
  key: string,
  options: { readonly fresh: boolean },
): Promise<ConversationEnd> {
  return new Conversation(cli, link, key).run(options.fresh);
}
