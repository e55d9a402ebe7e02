// Implements `parley run`: asks an agent one question, prints the answer on standard output and reports the
// end of the run as the exit code. With --json it prints each event of the run as a line of JSON; the last
// line has the type `end`.

import { MESSAGE_MAX_CHARS } from "../../contract/methods/parts.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { labelOf } from "../../core/text/label.ts";
import { growingText, safeText } from "../../core/text/safe-text.ts";
import { noteApprovals } from "../chat/approvals.ts";
import { type Cli, createCli, EXIT, isGone } from "../cli.ts";
import { readStdin } from "../files.ts";
import { type Link, type Reply, withLink } from "../gateway-link.ts";
import { openNamed } from "../session-name.ts";
import { connectionLost } from "./send.ts";

interface RunOptions {
  readonly agent?: string;
  readonly session?: string;
  /** Whether `session` is opened although a similar name exists. */
  readonly new?: boolean;
  /** Maximum time for the answer, in seconds. */
  readonly timeout?: number;
}

/** Duration of one request that waits for the end of the run. */
const WAIT_MS = 3_600_000;
const INTERRUPTED = 130;
/** Number of characters of the question that become the label of a new session. */
const LABEL_CHARS = 60;

/** Returns the question. `-` stands for the text on standard input. */
async function questionOf(cli: Cli, given: string): Promise<Result<string>> {
  const text = given === "-" ? await readStdin(cli.parts, MESSAGE_MAX_CHARS) : given;
  if (text.trim() === "") return fail("invalid_argument", "the question is empty");
  if (text.length <= MESSAGE_MAX_CHARS) return ok(text);
  return fail("invalid_argument", `the question has more than ${MESSAGE_MAX_CHARS} characters`);
}

async function sessionFor(
  cli: Cli,
  link: Link,
  question: string,
  { agent, session, new: isNew = false }: RunOptions,
): Promise<Reply<string>> {
  if (session !== undefined) return openNamed(cli, link, session, { isNew });
  const label = labelOf(question, LABEL_CHARS);
  const made = await link.request("sessions.create", { ...optional({ agentId: agent, label }) });
  return made.ok ? ok(made.value.key) : made;
}

/**
 * Prints the answer of a run: piece by piece in a terminal and with --json, which also prints the calls of
 * tools, otherwise once.
 */
class Answer {
  readonly #cli: Cli;
  readonly #streams: boolean;
  #shown = "";
  readonly text: Promise<string>;
  readonly #stops: readonly (() => void)[];
  readonly #started: Record<string, unknown>;
  #hasStarted = false;

  constructor(cli: Cli, link: Link, { sessionKey, runId }: Asked) {
    this.#cli = cli;
    this.#started = { type: "start", sessionKey, runId };
    this.#streams = cli.parts.isTTY || cli.options.json;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.text = promise;
    const chat = link.client.on("chat", (event) => {
      if (event.runId !== runId || event.stopReason === "delivered") return;
      const text = event.message?.content.map((block) => block.text).join("\n") ?? "";
      if (event.state !== "delta") resolve(text);
      else if (this.#streams) this.#grow(cli.options.json ? text : growingText(text));
    });
    const agent = link.client.on("agent", (event) => {
      if (event.runId !== runId || event.stream !== "tool") return;
      const { phase, toolCallId: id, name, args, isError, result } = event.data;
      if (phase === "start") this.#event({ type: "tool_call", id, name, args });
      else this.#event({ type: "tool_result", id, name, isError: isError === true, result });
    });
    this.#stops = [chat, agent];
  }

  /** Prints the line about the start of the run, unless an earlier event did. */
  start(): void {
    if (!this.#hasStarted) this.#cli.document(this.#started);
    this.#hasStarted = true;
  }

  #event(event: Record<string, unknown>): void {
    this.start();
    this.#cli.document(event);
  }

  #grow(text: string): void {
    // A text that does not continue the shown one is a new message of the same run.
    const isMore = text.startsWith(this.#shown);
    if (!isMore) this.end();
    const piece = text.slice(this.#shown.length);
    if (piece === "") return;
    this.#cli.write(piece);
    this.#event({ type: "text", text: piece, isNew: this.#shown === "" });
    this.#shown = text;
  }

  /** Prints the rest of the final text. */
  finish(text: string): void {
    const whole = this.#cli.options.json ? text : safeText(text);
    if (whole !== "") this.#grow(whole);
    this.end();
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  end(): void {
    if (this.#shown !== "" && !this.#shown.endsWith("\n")) this.#cli.write("\n");
    this.#shown = "";
  }
}

interface Asked {
  readonly sessionKey: string;
  readonly runId: string;
  readonly timeoutMs: number | undefined;
}

/** Waits for the end of the run, and stops the run at the time limit. Returns the exit code. */
async function follow(cli: Cli, link: Link, answer: Answer, asked: Asked): Promise<number> {
  const { sessionKey, runId, timeoutMs } = asked;
  const details = { sessionKey, runId };
  for (;;) {
    const waited = await link.request("agent.wait", { runId, timeoutMs: timeoutMs ?? WAIT_MS });
    if (!waited.ok) {
      answer.end();
      const message = { session: sessionKey, runId, sent: true };
      return isGone(waited) ? connectionLost(cli, waited, message) : cli.fail({ ...waited, details });
    }
    const { status, runStatus, error, code } = waited.value;
    if (status === "ok") {
      const reply = await answer.text;
      answer.finish(reply);
      cli.document({ ok: true, ...details, reply });
      return EXIT.done;
    }
    if (status === "timeout" && timeoutMs === undefined) continue;
    if (status === "timeout") await link.request("chat.abort", { sessionKey, runId });
    answer.end();
    if (status === "timeout" || runStatus === "timeout") {
      const limit = timeoutMs === undefined ? "its time limit" : `${timeoutMs / 1000} s`;
      return cli.fail(
        { code: "timeout", error: `The run was stopped after ${limit}.`, details },
        EXIT.timeout,
      );
    }
    if (runStatus === "aborted")
      return cli.fail({ code: code ?? "aborted", error: "The run was stopped.", details }, EXIT.stopped);
    return cli.fail({ code: code ?? "run_failed", error: error ?? "The run failed.", details });
  }
}

async function ask(cli: Cli, link: Link, question: string, options: RunOptions): Promise<number> {
  const session = await sessionFor(cli, link, question, options);
  if (!session.ok) return cli.fail(session);
  const timeoutMs = options.timeout === undefined ? undefined : Math.round(options.timeout * 1000);
  const asked = { sessionKey: session.value, runId: cli.parts.world.ids.orderedUuid(), timeoutMs };
  const { sessionKey, runId } = asked;
  const answer = new Answer(cli, link, asked);
  // The first Ctrl-C stops the run, and the second one ends the process.
  let interrupts = 0;
  const release = cli.parts.onSignal("SIGINT", () => {
    interrupts += 1;
    if (interrupts > 1) return cli.parts.exitNow(INTERRUPTED);
    void link.request("chat.abort", { sessionKey, runId });
  });
  const stopNotes = noteApprovals(cli, link, sessionKey);
  try {
    const params = { sessionKey, message: question, idempotencyKey: runId, ...optional({ timeoutMs }) };
    const sent = await link.request("chat.send", params);
    if (!sent.ok) {
      const message = { session: sessionKey, runId, sent: false };
      return isGone(sent) ? connectionLost(cli, sent, message) : cli.fail(sent);
    }
    const { reply } = sent.value;
    if (reply === undefined) {
      answer.start();
      return await follow(cli, link, answer, asked);
    }
    // The question was a command of the gateway, such as /status.
    cli.line(safeText(reply));
    cli.document({ ok: true, sessionKey, runId, reply });
    return EXIT.done;
  } finally {
    release();
    stopNotes();
    answer.stop();
  }
}

export async function runQuestion(
  { parts, options: global }: Cli,
  options: RunOptions & { readonly question: string },
): Promise<number> {
  const cli = createCli(parts, global, "end");
  const question = await questionOf(cli, options.question);
  if (!question.ok) return cli.fail(question, EXIT.usage);
  return withLink(cli, (link) => ask(cli, link, question.value, options));
}
