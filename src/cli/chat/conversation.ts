// Runs one conversation at the terminal: sends typed lines and shows the session's events. It continues when
// a lost connection is restored.
// Each message has one idempotency key, so a repeated send adds it only once. Events can be missed, so the
// new messages of the transcript are read after each run and each reconnect.

import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { AgentEvent } from "../../contract/events.ts";
import type { ListedRow } from "../../contract/methods/sessions.ts";
import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { COMMANDS, parseCommand } from "../../core/rules/command.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import { retryWords } from "../../core/shapes/model-retry.ts";
import { imageTypeOf } from "../../core/shapes/picture.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { within } from "../../world/pause.ts";
import type { Cli, Trouble } from "../cli.ts";
import type { Link } from "../gateway-link.ts";
import { age, count, excerpt, table, wholeText } from "../layout.ts";
import { type Activity, activityLine, IDLE, onAgentEvent, onChatEvent } from "./activity.ts";
import { Approvals } from "./approvals.ts";
import { TranscriptReader } from "./catch-up.ts";
import type { CommandHint } from "./completion.ts";
import type { Screen, Typed } from "./screen.ts";
import { sessionChoices } from "./sessions.ts";
import { ChatView, messageOps, type Op } from "./view.ts";

/** Number of earlier messages shown at the start. */
const SHOWN_BEFORE = 6;
const HISTORY_DEFAULT = 20;
const QUIT_WAIT_MS = 3_000;
const USAGE_COLUMNS = 13;
const OWN_COMMANDS: readonly CommandHint[] = [
  { name: "stop", description: "stop the agent and its sub-agents (or press Ctrl-C while it works)" },
  { name: "history [N]", description: "show the last N messages (default: 20)" },
  { name: "open [KEY]", description: "switch to another session; without a key, choose one (or Ctrl+K)" },
  {
    name: "picture FILE",
    description: 'send a picture, with the words after it (/picture "a b.png" what is it?)',
  },
  { name: "quit", description: "leave the chat; running work continues (or press Ctrl-D)" },
];
const GATEWAY_COMMANDS = COMMANDS.filter(({ name }) => !["help", "stop"].includes(name));
const helpLine = ({ name, description }: CommandHint): string =>
  `${`/${name}`.padEnd(USAGE_COLUMNS)} ${description}`;
const HELP = [
  ...OWN_COMMANDS.map(helpLine),
  "Commands of the gateway:",
  ...GATEWAY_COMMANDS.map(helpLine),
  "Every other line is sent to the agent.",
];

/** The commands of the chat and of the gateway, for their completion. */
export const CHAT_COMMANDS: readonly CommandHint[] = [
  { name: "help", description: "list the commands" },
  ...OWN_COMMANDS.map(({ name, description }) => ({ name: name.split(" ")[0] ?? name, description })),
  ...GATEWAY_COMMANDS,
];

function isCommand(text: string): boolean {
  return parseCommand(text, { isOurs: () => false }) !== undefined;
}

export interface ConversationEnd {
  /** All messages of the conversation with --json; otherwise empty. */
  readonly messages: readonly Message[];
  /** The failure that ended the conversation. Absent if the user or the end of the input ended it. */
  readonly trouble?: Trouble;
  /** Key of the session that the user opened instead. */
  readonly next?: string;
}

/** Runs `read` once for many requests: one that arrives during a read causes one more read. */
class Coalesced {
  readonly #read: () => Promise<void>;
  #reading: Promise<void> = Promise.resolve();
  #again = false;

  constructor(read: () => Promise<void>) {
    this.#read = read;
  }

  ask(): Promise<void> {
    if (this.#again) return this.#reading;
    this.#again = true;
    this.#reading = this.#reading.then(() => {
      this.#again = false;
      return this.#read();
    });
    return this.#reading;
  }

  ended(): Promise<void> {
    return this.#reading;
  }
}

class Conversation {
  readonly #cli: Cli;
  readonly #link: Link;
  readonly #key: string;
  readonly #screen: Screen;
  readonly #view: ChatView;
  readonly #reader: TranscriptReader;
  readonly #approvals: Approvals;
  readonly #messages: Message[] = [];
  /** Runs of this session that are in progress, according to the events so far. */
  readonly #active = new Set<string>();
  /** Requests that send a typed message and that the gateway has not answered yet. */
  readonly #sending = new Set<Promise<void>>();
  readonly #transcriptReads = new Coalesced(() => this.#readNew());
  /** The newest message, which is shown only when the events of its run arrive. */
  #unsettled: Message | undefined;
  #trouble: Trouble | undefined;
  #next: string | undefined;
  #activity: Activity = IDLE;
  /** The session's row, as it was read last. */
  #row: ListedRow | undefined;
  readonly #rowReads = new Coalesced(async () => {
    const listed = await this.#link.request("sessions.list", {
      keys: [this.#key],
      includeChildren: true,
      includeArchived: true,
    });
    if (listed.ok) this.#row = listed.value.sessions[0];
  });
  readonly #approvalReads = new Coalesced(() => this.#readApprovals());
  #idle: () => void = () => {};
  #off: () => void = () => {};

  constructor(cli: Cli, link: Link, screen: Screen, key: string) {
    this.#cli = cli;
    this.#link = link;
    this.#key = key;
    this.#screen = screen;
    this.#approvals = new Approvals(link, key);
    this.#view = new ChatView(key, cli);
    this.#reader = new TranscriptReader(link, key);
  }

  async run(fresh: boolean): Promise<ConversationEnd> {
    const { client } = this.#link;
    const off = [
      client.on("chat", (event) => {
        if (event.sessionKey !== this.#key) return;
        this.#activity = onChatEvent(this.#activity, event, this.#cli.parts.world.clock.now());
        // A final text may belong to the run before the unsettled message. Every other event shows that this
        // message's own run is in progress.
        if (event.state !== "final") this.#showUnsettled();
        this.#screen.show(this.#view.chat(event));
        if (event.state === "delta") return;
        void this.#transcriptReads.ask().then(() => this.#noteEnd(event.runId));
      }),
      client.on("agent", (event) => this.#onAgent(event)),
      ...(this.#screen.draws ? this.#follow() : []),
      this.#cli.parts.onSignal("SIGTERM", () => this.#leave()),
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
      // At the end of the input, waits for the runs in progress.
      while (this.#active.size > 0 && this.#trouble === undefined && this.#next === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#idle = resolve;
        await promise;
      }
      await this.#transcriptReads.ended();
      this.#showUnsettled();
    } finally {
      for (const stop of [...off, this.#off]) stop();
    }
    return { messages: this.#messages, ...optional({ trouble: this.#trouble, next: this.#next }) };
  }

  /** Keeps the line of activity and the permission requests up to date. */
  #follow(): (() => void)[] {
    const { client } = this.#link;
    const askAll = (): void => {
      void this.#rowReads.ask();
      void this.#approvalReads.ask();
    };
    askAll();
    this.#screen.status((nowMs) => {
      const line = activityLine(this.#activity, this.#row, nowMs);
      return this.#cli.style("dim", line === "" ? safeLine(this.#key) : `${safeLine(this.#key)} · ${line}`);
    });
    return [
      client.on("attention", () => void this.#approvalReads.ask()),
      client.on("sessions", ({ key }) => {
        if (key === this.#key || isSubagentKey(key)) void this.#rowReads.ask();
      }),
      client.onState((state) => {
        if (state === "connected") askAll();
      }),
    ];
  }

  async #begin(fresh: boolean): Promise<void> {
    const { server } = this.#link.client.hello;
    this.#tell(`${safeLine(this.#key)}, on Parley ${safeLine(server.version)}. /help lists the commands.`);
    const before = await this.#reader.begin(fresh ? 0 : SHOWN_BEFORE);
    if (!before.ok) return this.#giveUp(before);
    // The page may begin with results of tool calls that are not on it: skip these results.
    const from = before.value.findIndex((message) => message.role !== "toolResult");
    const shown = before.value.slice(Math.max(0, from));
    this.#screen.show(shown.flatMap((message) => messageOps(this.#cli, this.#key, message)));
  }

  async #talk(): Promise<void> {
    let interrupted = false;
    this.#off = this.#screen.onInterrupt(() => {
      // The first Ctrl-C stops the agent. A second one leaves the chat, and so does one while no run is in
      // progress, if the screen does not ask first.
      if (interrupted) return this.#leave();
      if (!this.#isBusy()) {
        if (this.#screen.mayLeave()) this.#leave();
        return;
      }
      interrupted = true;
      void this.#stop().then(() => {
        interrupted = false;
      });
    });
    for await (const typed of this.#screen.typed()) {
      if (this.#trouble !== undefined) return;
      const text = typed.text.trim();
      if (text === "") continue;
      if (text === "/quit" || text === "/exit") {
        const { clock } = this.#cli.parts.world;
        await within(clock, QUIT_WAIT_MS, Promise.all(this.#sending), { keep: "alive" });
        this.#leave();
        return;
      }
      if (text.startsWith("/")) await this.#command(text);
      else if (!(await this.#approve({ ...typed, text }))) this.#send(text);
      if (this.#next !== undefined) return;
    }
  }

  /** Returns whether a run of this session is in progress. A drawn screen also knows earlier runs. */
  #isBusy(): boolean {
    const { state = "idle" } = this.#row ?? {};
    return this.#active.size > 0 || (this.#screen.draws && state !== "idle");
  }

  #leave(): void {
    this.#active.clear();
    this.#idle();
    void this.#screen.close();
  }

  async #command(text: string): Promise<void> {
    const [name, argument] = text.split(/\s+/);
    switch (name) {
      case "/help":
        return this.#screen.show(HELP.map((line) => ({ op: "line", text: this.#cli.style("dim", line) })));
      case "/stop":
        return this.#stop();
      case "/subagents":
        return argument === undefined ? this.#subagents() : this.#send(text);
      case "/history":
        return this.#history(Number(argument ?? HISTORY_DEFAULT));
      case "/open":
        return this.#openSession(text.slice("/open".length).trim());
      case "/picture": {
        const key = this.#key;
        const read = await readPicture(text, this.#cli.parts.folder);
        if (key !== this.#key) this.#tell(`not sent: the picture was meant for ${safeLine(key)}`);
        else if (read.ok) this.#send(read.value.text, [read.value.attachment]);
        else this.#tell(safeLine(read.error));
        return;
      }
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
    this.#screen.show(page.value.messages.flatMap((message) => messageOps(this.#cli, this.#key, message)));
  }

  /** Switches to the session with this key or label. If it is empty, lets the user choose. */
  async #openSession(name: string): Promise<void> {
    const wanted = name === "" ? await this.#choose() : name;
    if (wanted === undefined) return;
    const byKey = await this.#link.request("sessions.resolve", { key: wanted });
    const found = byKey.ok ? byKey : await this.#link.request("sessions.resolve", { label: wanted });
    if (found.ok) this.#next = found.value.key;
    else this.#tell(safeLine(byKey.ok ? found.error : byKey.error));
  }

  async #choose(): Promise<string | undefined> {
    const choices = await sessionChoices(this.#link, "", this.#cli.parts.world.clock.now());
    if (!choices.ok) this.#tell(safeLine(choices.error));
    else if (this.#screen.draws) return this.#screen.choose(choices.value);
    else for (const { value } of choices.value) this.#tell(`/open ${safeLine(value)}`);
    return undefined;
  }

  /** Answers the open permission request, if the text is an answer to it. */
  async #approve(typed: Typed): Promise<boolean> {
    const answer = this.#approvals.answerOf(typed);
    if (answer === undefined) return false;
    if (answer === "hasty") {
      this.#tell("not counted, because the question had just appeared: type it again");
      return true;
    }
    const answered = await this.#approvals.answer(answer);
    this.#tell(answered.ok ? (answer.decision === "allow" ? "allowed" : "denied") : safeLine(answered.error));
    await this.#readApprovals();
    return true;
  }

  async #readApprovals(): Promise<void> {
    const question = await this.#approvals.read(this.#cli.parts.world.clock.now());
    if (question === undefined) return;
    const { sessionKey, title, detail } = question;
    const from = sessionKey === this.#key ? "the agent" : safeLine(sessionKey);
    const text = `  ? ${from} asks for permission: ${wholeText(title, "    ")}`;
    const more = detail === undefined ? "" : `\n    ${wholeText(detail, "    ")}`;
    this.#screen.show([{ op: "line", text: `${this.#cli.style("yellow", text)}${more}` }]);
    this.#tell("type y to allow or n to deny, then press Enter");
  }

  #send(text: string, attachments: readonly Attachment[] = []): void {
    const sending = this.#say(text, attachments).finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  async #say(text: string, attachments: readonly Attachment[]): Promise<void> {
    const runId = this.#cli.parts.world.ids.orderedUuid();
    // The transcript does not contain a command, only the answer to it. So there is no copy to suppress
    // later.
    if (!isCommand(text)) this.#view.typed(text);
    this.#active.add(runId);
    const sent = await this.#link.request("chat.send", {
      sessionKey: this.#key,
      message: text,
      idempotencyKey: runId,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
    if (sent.ok) return;
    this.#tell(`not sent: ${safeLine(sent.error)}`);
    this.#noteEnd(runId);
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
    this.#screen.show(lines.map((line): Op => ({ op: "line", text: line })));
  }

  #onAgent(event: AgentEvent): void {
    if (event.sessionKey !== this.#key) return;
    this.#activity = onAgentEvent(this.#activity, event);
    if (event.stream === "tool") {
      this.#showUnsettled();
      this.#screen.show(this.#view.tool(event.data));
    }
    if (event.stream === "retry") this.#tell(safeLine(retryWords(event.data)));
    if (event.stream === "flow") this.#screen.show(this.#view.flow(event.runId, event.data));
    if (event.stream !== "lifecycle") return;
    if (event.data.phase === "start") {
      this.#active.add(event.runId);
      this.#screen.show(this.#view.started(event.runId));
    } else void this.#transcriptReads.ask().then(() => this.#noteEnd(event.runId));
  }

  #noteEnd(runId: string): void {
    this.#active.delete(runId);
    if (this.#active.size === 0) this.#idle();
  }

  /** Reads and shows new messages of the transcript. */
  async #readNew(): Promise<void> {
    const read = await this.#reader.readNew();
    if (!read.ok) return;
    const { messages, wasReset, gap } = read.value;
    if (wasReset) this.#tell("the session was reset");
    if (gap) this.#tell("some messages are not shown here; see /history");
    if (this.#cli.options.json) this.#messages.push(...messages);
    // If the last one comes from another session, it is shown later: the events of its run name the reply
    // turn, and usually arrive just afterwards.
    const last = messages.at(-1);
    if (last === undefined) return;
    this.#showUnsettled();
    const from = last.role === "user" ? last.provenance : undefined;
    const waits = from?.kind === "inter_session" && from.sourceTool === "sessions_send";
    this.#unsettled = waits ? last : undefined;
    this.#screen.show(this.#view.settle(waits ? messages.slice(0, -1) : messages));
  }

  /** Shows the message that waits for the events of its run, if there is one. */
  #showUnsettled(): void {
    const message = this.#unsettled;
    if (message === undefined) return;
    this.#unsettled = undefined;
    this.#screen.show(this.#view.settle([message]));
  }

  /** After a reconnect, shows missed messages and notes the runs that ended in the meantime. */
  async #onBack(): Promise<void> {
    this.#tell("reconnected");
    this.#activity = IDLE;
    const waiting = [...this.#active];
    await this.#transcriptReads.ask();
    for (const runId of waiting) {
      const run = await this.#link.request("agent.wait", { runId, timeoutMs: 0 });
      if (!run.ok || run.value.status === "timeout") continue;
      await this.#transcriptReads.ask();
      this.#noteEnd(runId);
    }
  }

  #giveUp(trouble: Trouble): void {
    this.#trouble = trouble;
    this.#leave();
  }

  #tell(text: string): void {
    this.#screen.show([{ op: "line", text: this.#cli.style("dim", `· ${text}`) }]);
  }
}

/** Runs conversations until the input ends or the user leaves. `fresh`: the session has no messages yet. */
export async function runConversation(
  cli: Cli,
  link: Link,
  screen: Screen,
  first: { readonly key: string; readonly fresh: boolean },
): Promise<ConversationEnd> {
  const messages: Message[] = [];
  let { key, fresh } = first;
  for (;;) {
    const end = await new Conversation(cli, link, screen, key).run(fresh);
    messages.push(...end.messages);
    if (end.next === undefined) return { ...end, messages };
    key = end.next;
    fresh = false;
  }
}

const TASK_CHARS_MAX = 60;

type List = Extract<ToolResultOf<"subagents">, { readonly subagents: unknown }>;
/** Result of the tool `subagents`: its list, or an error. */
type SubagentsResult = Partial<List> & { readonly error?: string };

function subagentLines(answer: SubagentsResult, nowMs: number): string[] {
  const { subagents: rows, more, error } = answer;
  if (rows === undefined) return [safeLine(error ?? "the gateway returned no list of sub-agents")];
  if (rows.length === 0) return ["This session has no sub-agents."];
  const cells = rows.map((row) => [
    row.sessionKey,
    row.finished ? (row.ended ?? "finished") : row.state,
    row.acceptedAt === undefined ? "" : `${age(row.acceptedAt, nowMs)} ago`,
    row.label ?? "",
    excerpt(row.task, TASK_CHARS_MAX),
  ]);
  const lines = table(["SUB-AGENT", "STATE", "STARTED", "LABEL", "TASK"], cells);
  return more === true ? [...lines, "(more: npx parley-gateway sessions tree)"] : lines;
}

interface Attachment {
  readonly mimeType: string;
  readonly content: string;
}

/** The gateway's maximum size of a picture. */
const PICTURE_MAX_BYTES = 10 * 1024 * 1024;
const LINE = /^\/picture\s+(?:"([^"]+)"|(\S+))\s*(.*)$/s;

/** `folder`: relative names begin here. A name with spaces is in double quotes. */
async function readPicture(
  line: string,
  folder: string,
): Promise<Result<{ readonly text: string; readonly attachment: Attachment }>> {
  const [, quoted, plain, words = ""] = LINE.exec(line) ?? [];
  const name = quoted ?? plain;
  if (name === undefined) return fail("invalid_argument", "/picture needs a file, like /picture chart.png");
  const path = resolve(folder, name);
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) return fail("invalid_argument", `there is no file ${path}`);
  if (found.size > PICTURE_MAX_BYTES)
    return fail("too_large", `${path} is larger than ${PICTURE_MAX_BYTES} bytes`);
  const bytes = await readFile(path).catch(() => undefined);
  if (bytes === undefined) return fail("invalid_argument", `${path} can't be read`);
  const mimeType = imageTypeOf(bytes);
  if (mimeType === undefined)
    return fail("invalid_argument", `${path} is not a PNG, JPEG, GIF or WebP picture`);
  const text = words.trim() === "" ? "(a picture)" : words;
  return ok({ text, attachment: { mimeType, content: bytes.toString("base64") } });
}
