// Owns the program that controls the Messages app (`imsg rpc`): its start, pipes, requests and exit.
// IP1: the program is started in its own process group, with a minimal environment that lacks the gateway's
//      variables.
// IP2: a failed request says whether the program may have received it. A request that could not be written
//      was not received.
// IP3: memory is limited for the program's output, and for input that the program has not read.
// IP4: to stop the program, its input is closed, then SIGTERM is sent, then SIGKILL. If the gateway itself is
//      killed, the program's input closes, too.

import { type ChildProcess, spawn } from "node:child_process";
import { homedir, userInfo } from "node:os";
import { ListenProblem } from "../../channels/accounts.ts";
import { type Fields, fieldsOf, jsonOf } from "../../core/json.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { killGroup, lastOutputRead, signalGroup } from "../../world/programs.ts";
import type { Timer, World } from "../../world.ts";

/** Size limit of one line of output. A longer line is discarded. */
const LINE_BYTES_MAX = 4 * 1024 * 1024;
/** Maximum size of the input that the program has not read. */
const UNREAD_BYTES_MAX = 1024 * 1024;
const LAST_WORDS_CHARS = 2_000;
const TOLD_CHARS = 300;
/** Time limit for the program's first answer, and for each step of stopping it. */
const START_MS = 20_000;
const STOP_STEP_MS = 2_000;
/** Value of PATH on a Mac. */
const SEARCH_PATH_MAC = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const NEWLINE = 10;

/** Result of a request. */
export type Answer =
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: Fields }
  /** `reached`: the program may have received the request. */
  | { readonly kind: "failed"; readonly reached: boolean; readonly why: string };

/** Handles a notification. `bytes`: length of its line. */
type Notice = (method: string, params: Fields, bytes: number) => void;

/** Returns the environment of the program: home directory, language, and PATH. */
function environment(): Record<string, string> {
  const { username } = userInfo();
  return { HOME: homedir(), USER: username, LOGNAME: username, LANG: "en_US.UTF-8", PATH: SEARCH_PATH_MAC };
}

class Lines {
  readonly #heard: (line: string, bytes: number) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(heard: (line: string, bytes: number) => void) {
    this.#heard = heard;
  }

  add(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#grow(chunk.subarray(start, end));
      // If the line was too long, its pieces were discarded, so `line` is shorter than `#bytes`.
      const line = Buffer.concat(this.#pieces);
      if (line.length === this.#bytes) this.#heard(line.toString("utf8"), line.length);
      this.#pieces = [];
      this.#bytes = 0;
      start = end + 1;
    }
    this.#grow(chunk.subarray(start));
  }

  #grow(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > LINE_BYTES_MAX) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }
}

interface Waiting {
  readonly answer: (answer: Answer) => void;
  readonly deadline: Timer;
}

/** The running program, and the requests that wait for an answer. */
export class Program {
  /** Resolves with the reason as text when the program has ended. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #world: World;
  readonly #waiting = new Map<number, Waiting>();
  #notice: Notice | undefined;
  #requests = 0;
  #words = "";
  #over = false;

  constructor(child: ChildProcess, world: World) {
    this.#child = child;
    this.#world = world;
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      // Ignore errors of the streams: if the program exits during a write, the exit event reports it.
      stream?.on("error", () => undefined);
    }
    const lines = new Lines((line, bytes) => this.#line(line, bytes));
    child.stdout?.on("data", (chunk: Buffer) => lines.add(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#words = (this.#words + chunk.toString().slice(-LAST_WORDS_CHARS)).slice(-LAST_WORDS_CHARS);
    });
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => void this.#takeExit(code, signal).then(resolve));
    });
  }

  running(): boolean {
    return !this.#over;
  }

  /** Sets the listener for notifications, of which there is only one. The returned function removes it. */
  listen(notice: Notice): () => void {
    this.#notice = notice;
    return () => {
      if (this.#notice === notice) this.#notice = undefined;
    };
  }

  request(method: string, params: Fields, timeoutMs: number): Promise<Answer> {
    const { stdin } = this.#child;
    const unsent = (why: string): Answer => ({ kind: "failed", reached: false, why });
    if (this.#over || stdin?.writable !== true) return Promise.resolve(unsent("imsg is not running"));
    if (stdin.writableLength > UNREAD_BYTES_MAX)
      return Promise.resolve(unsent("imsg does not read its input"));
    this.#requests += 1;
    const id = this.#requests;
    const { clock } = this.#world;
    return new Promise((resolve) => {
      const answer = (given: Answer): void => {
        deadline.cancel();
        this.#waiting.delete(id);
        resolve(given);
      };
      const deadline = clock.after(timeoutMs, () => {
        answer({ kind: "failed", reached: true, why: `imsg gave no answer within ${timeoutMs / 1_000} s` });
      });
      this.#waiting.set(id, { answer, deadline });
      stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  }

  #line(line: string, bytes: number): void {
    const said = fieldsOf(jsonOf(line));
    if (typeof said.method === "string") {
      this.#notice?.(said.method, fieldsOf(said.params), bytes);
      return;
    }
    const waiting = typeof said.id === "number" ? this.#waiting.get(said.id) : undefined;
    if (waiting === undefined) return;
    const { code, message, data } = fieldsOf(said.error);
    const words = typeof message === "string" ? message : "";
    // `data` often contains a text that explains `message`.
    const more = typeof data === "string" ? `${words}: ${data}` : words;
    if (typeof code !== "number") waiting.answer({ kind: "result", value: said.result });
    else waiting.answer({ kind: "error", code, message: more, data: fieldsOf(data) });
  }

  async #takeExit(code: number | null, signal: NodeJS.Signals | null): Promise<string> {
    this.#over = true;
    killGroup(this.#child);
    await lastOutputRead();
    for (const stream of this.#child.stdio) stream?.destroy();
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    const words = safeLine(this.#world.redactor.mask(this.#words.trim())).slice(-TOLD_CHARS);
    const why = `imsg ended ${how}${words === "" ? "" : `; it said: ${words}`}`;
    for (const { answer } of [...this.#waiting.values()]) answer({ kind: "failed", reached: true, why });
    return why;
  }

  async stop(): Promise<void> {
    const { clock } = this.#world;
    const child = this.#child;
    if (this.#over) return;
    child.stdin?.end();
    const kill = clock.after(2 * STOP_STEP_MS, () => killGroup(child));
    const ask = clock.after(STOP_STEP_MS, () => signalGroup(child, "SIGTERM"));
    await this.ended;
    kill.cancel();
    ask.cancel();
  }
}

function whyNotStarted(error: NodeJS.ErrnoException, file: string): ListenProblem {
  const name = head(safeLine(file), 100);
  const needs = "iMessage needs macOS with imsg installed: see docs/IMESSAGE.md";
  if (error.code === "ENOENT") return new ListenProblem(`the program ${name} was not found. ${needs}`, true);
  return new ListenProblem(
    `the program ${name} can't be started (${error.code ?? "unknown"}). ${needs}`,
    true,
  );
}

/** Starts the program and waits for its first answer. Throws a `ListenProblem` on failure. */
export async function startProgram(command: readonly string[], world: World): Promise<Program> {
  const [file = "imsg", ...args] = command;
  const child = await new Promise<ChildProcess>((resolve, reject) => {
    try {
      const started = spawn(file, args, {
        cwd: "/",
        env: environment(),
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      started.once("error", (error) => reject(whyNotStarted(error, file)));
      started.once("spawn", () => resolve(started));
    } catch (error) {
      // `spawn` throws if an argument is invalid, for example because it contains NUL.
      reject(whyNotStarted(error as NodeJS.ErrnoException, file));
    }
  });
  const program = new Program(child, world);
  // Older versions answer this method with an error, which also shows that the program works.
  const answer = await program.request("status", {}, START_MS);
  if (answer.kind !== "failed") return program;
  await program.stop();
  throw new ListenProblem(answer.why);
}
