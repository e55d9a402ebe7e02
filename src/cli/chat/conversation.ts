// Owns one conversation at the terminal: what is typed goes out, what happens in the session comes in, also
// after the gateway was gone for a while.
// CO1: a message is sent with one id, so that however often it is sent, it is said once.
// CO2: whenever a run ends or the connection is back, the transcript is read on: it is the truth (CV1 of
//      view.ts).

import { COMMANDS, parseCommand } from "../../core/command.ts";
import type { Message } from "../../core/message.ts";
import { retryWords } from "../../core/model-retry.ts";
import { safeLine } from "../../core/safe-text.ts";
import type { AgentEvent, ChatEvent } from "../../gateway/protocol.ts";
import type { Cli, Trouble } from "../cli.ts";
import type { Link } from "../gateway-link.ts";
import { count } from "../layout.ts";
import { messageLines } from "../message-lines.ts";
import { Reader } from "./catch-up.ts";
import { subagentLines } from "./subagents.ts";
import { Terminal } from "./terminal.ts";
import { ChatView, type Op } from "./view.ts";

/** Messages from before that are shown at the start. */
const SHOWN_BEFORE = 6;
const HISTORY_DEFAULT = 20;
const QUIT_WAIT_MS = 3_000;
const USAGE_COLUMNS = 13;
const HELP = [
  "/stop         stop the agent and its sub-agents (Ctrl-C too, while it works)",
  "/subagents    the sub-agents of this session, and what they are doing",
  "/history [N]  the last N messages (20)",
  "/quit         leave; the agent finishes by itself (Ctrl-D too)",
  "Answered by the gateway, in the transcript:",
  ...COMMANDS.filter(({ name }) => !["help", "stop"].includes(name)).map(
    ({ name, description }) => `${`/${name}`.padEnd(USAGE_COLUMNS)} ${description}`,
  ),
  "Everything else is said to the agent.",
];

function isCommand(text: string): boolean {
  return parseCommand(text, { isOurs: () => false }) !== undefined;
}

export interface ConversationEnd {
  /** With --json everything that was said while it lasted: it is the answer. */
  readonly messages: readonly Message[];
  /** Why it had to end. */
  readonly trouble?: Trouble;
}

class Conversation {
  readonly #cli: Cli;
  readonly #link: Link;
  readonly #key: string;
  readonly #terminal: Terminal;
  readonly #view: ChatView;
  readonly #reader: Reader;
  readonly #said: Message[] = [];
  /** Runs of this session that have not ended, as far as one was told. */
  readonly #active = new Set<string>();
  /** What was typed and is not accepted yet. */
  readonly #sending = new Set<Promise<void>>();
  #reading: Promise<void> = Promise.resolve();
  #readAgain = false;
  #trouble: Trouble | undefined;
  #idle: () => void = () => {};
  #off: () => void = () => {};

  constructor(cli: Cli, link: Link, key: string) {
    this.#cli = cli;
    this.#link = link;
    this.#key = key;
    this.#terminal = new Terminal(cli);
    this.#view = new ChatView(key, cli);
    this.#reader = new Reader(link, key);
  }

  async run(fresh: boolean): Promise<ConversationEnd> {
    const { client } = this.#link;
    const off = [
      client.on("chat", (event) => this.#onChat(event)),
      client.on("agent", (event) => this.#onAgent(event)),
      client.onState((state, error) => {
        if (state === "connected") void this.#onBack();
        else if (state === "reconnecting") this.#tell("connection lost; trying again…");
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
      await this.#settled();
    } finally {
      for (const stop of [...off, this.#off]) stop();
      this.#terminal.close();
    }
    return { messages: this.#said, ...(this.#trouble === undefined ? {} : { trouble: this.#trouble }) };
  }

  async #begin(fresh: boolean): Promise<void> {
    const { server } = this.#link.client.hello;
    this.#tell(`${safeLine(this.#key)}, on Parley ${safeLine(server.version)}. /help says what there is.`);
    const before = await this.#reader.begin(fresh ? 0 : SHOWN_BEFORE);
    if (!before.ok) return this.#giveUp(before);
    // A result whose call is not shown says nothing.
    const from = before.value.findIndex((message) => message.role !== "toolResult");
    const lines = before.value
      .slice(Math.max(0, from))
      .flatMap((message) => messageLines(this.#cli, message));
    this.#terminal.show(lines.map((text) => ({ op: "line", text })));
  }

  async #talk(): Promise<void> {
    let interrupted = false;
    this.#off = this.#terminal.onInterrupt(() => {
      // The first Ctrl-C stops the agent; with nothing to stop, or the second time, one leaves.
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

  /** Whoever says something and leaves at once has said it; a gateway that is away is not waited for long. */
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
        return this.#tell(`there is no command ${safeLine(name ?? "")}; /help lists them`);
    }
  }

  async #history(wanted: number): Promise<void> {
    if (!Number.isInteger(wanted) || wanted < 1)
      return this.#tell("/history takes a number, like /history 50");
    const params = { sessionKey: this.#key, limit: Math.min(wanted, 1000) };
    const page = await this.#link.call<{ messages: readonly Message[] }>("chat.history", params);
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
    // A command is no message: the transcript has its answer alone.
    if (!isCommand(text)) this.#view.typed(text);
    this.#active.add(runId);
    const sent = await this.#link.call("chat.send", {
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
    const stopped = await this.#link.call<{ aborted: boolean; runIds: readonly string[] }>("chat.abort", {
      sessionKey: this.#key,
    });
    if (!stopped.ok) return this.#tell(`not stopped: ${safeLine(stopped.error)}`);
    const { aborted, runIds } = stopped.value;
    const below = runIds.filter((runId) => !own.has(runId)).length;
    if (!aborted && below === 0) this.#tell("there is nothing to stop");
    else if (below > 0) this.#tell(`also stopped: ${count(below, "run")} of sub-agents, or still queued`);
  }

  async #subagents(): Promise<void> {
    const listed = await this.#link.call<object>("tools.invoke", {
      name: "subagents",
      sessionKey: this.#key,
    });
    if (!listed.ok) return this.#tell(safeLine(listed.error));
    const lines = subagentLines(listed.value, this.#cli.parts.world.clock.now());
    this.#terminal.show(lines.map((line): Op => ({ op: "line", text: line })));
  }

  #onChat(event: ChatEvent): void {
    if (event.sessionKey !== this.#key) return;
    this.#terminal.show(this.#view.chat(event));
    if (event.state === "delta") return;
    void this.#readOn().then(() => this.#ended(event.runId));
  }

  #onAgent(event: AgentEvent): void {
    if (event.sessionKey !== this.#key) return;
    if (event.stream === "tool") this.#terminal.show(this.#view.tool(event.data));
    if (event.stream === "retry") this.#tell(safeLine(retryWords(event.data)));
    if (event.stream === "flow") this.#terminal.show(this.#view.flow(event.runId, event.data));
    if (event.stream !== "lifecycle") return;
    if (event.data.phase === "start") {
      this.#active.add(event.runId);
      this.#terminal.show(this.#view.started(event.runId));
    } else void this.#readOn().then(() => this.#ended(event.runId));
  }

  #ended(runId: string): void {
    this.#active.delete(runId);
    if (this.#active.size === 0) this.#idle();
  }

  /**
   * Shows what the transcript has and the terminal has not. Calls during a reading make it read once more.
   */
  #readOn(): Promise<void> {
    if (this.#readAgain) return this.#reading;
    this.#readAgain = true;
    this.#reading = this.#reading.then(async () => {
      this.#readAgain = false;
      const read = await this.#reader.readOn();
      if (!read.ok) return;
      const { messages, begunAnew, gap } = read.value;
      if (begunAnew) this.#tell("the session was reset");
      if (gap) this.#tell("more was said meanwhile than is shown here; see /history");
      if (this.#cli.options.json) this.#said.push(...messages);
      this.#terminal.show(this.#view.settle(messages));
    });
    return this.#reading;
  }

  /**
   * The gateway is there again: what was missed is shown, and runs that ended meanwhile are known to have.
   */
  async #onBack(): Promise<void> {
    this.#tell("connected again");
    const waiting = [...this.#active];
    await this.#readOn();
    for (const runId of waiting) {
      const run = await this.#link.call<{ status: string }>("agent.wait", { runId, timeoutMs: 0 });
      if (!run.ok || run.value.status === "timeout") continue;
      await this.#readOn();
      this.#ended(runId);
    }
  }

  /** At the end of the input: what was asked is answered first. */
  async #settled(): Promise<void> {
    while (this.#active.size > 0 && this.#trouble === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      await promise;
    }
    await this.#reading;
  }

  #giveUp(trouble: Trouble): void {
    this.#trouble = trouble;
    this.#leave();
  }

  #tell(text: string): void {
    this.#terminal.show([{ op: "line", text: this.#cli.style("dim", `· ${text}`) }]);
  }
}

/** Talks until the input ends or somebody leaves. `fresh`: nothing was said in this session before. */
export function runConversation(
  cli: Cli,
  link: Link,
  key: string,
  options: { readonly fresh: boolean },
): Promise<ConversationEnd> {
  return new Conversation(cli, link, key).run(options.fresh);
}
