// The model server of the crash tests. It follows the plan in a message, and records all requests. Every
// answer, tool call and side effect has a unique number, so that repetitions are noticed. Two open requests
// of one session violate I1, unless the process of the first one was killed or paused, or its run was ended
// so that it disconnects soon. Each request must have the order of roles that model APIs require.

import { createHash } from "node:crypto";
import { type Dice, dice } from "../dice.ts";
import type { ServedMessage, ServedRequest } from "../model-server/requests.ts";
import type { Answer } from "../model-server/server.ts";
import { call, drop, httpError, mark, pause, type Step, text } from "../model-server/steps.ts";

/**
 * If two requests of one session are open, the first one has this time to disconnect. Later the pair is a
 * violation.
 */
const HANG_UP_MS = 2_000;
const LATENCY_MAX_MS = 60;
const SENT_WAITS_SECONDS = [0, 0.3, 2, 5];

/** One request to the model. */
export interface ModelCall {
  readonly number: number;
  readonly sessionKey: string;
  /** Name of the gateway process that made the request, including the number of its start. */
  readonly life: string;
  /** Fingerprint of session and transcript: equal for repeated requests. */
  readonly asked: string;
  /** `cut`: the process disconnected before everything was written. */
  end: "open" | "answered" | "refused" | "cut";
  /**
   * The final text, or the ids of the tool calls. If the store contains one of these, the answer is stored.
   */
  readonly marks: readonly string[];
}

export interface CrashModelOptions {
  readonly seed: string;
  /** The file to which each `exec` call appends a line. */
  readonly effectsFile: string;
  /** Sessions to which the model may send, by canonical key. */
  readonly sessions: readonly string[];
  isBroken(life: string): boolean;
}

export interface CrashModel {
  readonly calls: readonly ModelCall[];
  /** Violations found so far. */
  readonly problems: readonly string[];
  /** Ids of the requested side effects, each with its tool call. */
  readonly effects: ReadonlyMap<string, string>;
  answer(request: ServedRequest): Answer;
  /** Resolves when each pair of simultaneous requests is known to be allowed or a violation. */
  settled(): Promise<void>;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Returns a random plan for a run, in the form `PLAN/<spawn levels left> step; step`. Each step is one model
 * call.
 */
export function planText(luck: Dice, levels: number, sessions: readonly string[]): string {
  const words: string[] = [];
  for (let left = luck.below(4); left > 0; left -= 1) {
    const roll = luck.below(levels > 0 ? 10 : 4);
    if (roll < 3) words.push("exec");
    else if (roll < 4) words.push(luck.of(["write", "list", "exec+exec"]));
    else if (roll < 7) words.push(`send ${luck.of(sessions)} ${luck.of(SENT_WAITS_SECONDS)}`);
    else words.push(`spawn ${1 + luck.below(3)} ${luck.of(["keep", "delete"])}`);
  }
  return `PLAN/${levels} ${words.join("; ")}`;
}

/** The side effect of a command of this model, or undefined. */
export function effectOf(command: string): string | undefined {
  return /^echo (\S+) >> /.exec(command)?.[1];
}

interface Plan {
  readonly levels: number;
  readonly words: readonly string[];
}

function planIn(words: string): Plan {
  const found = /PLAN\/(\d) (.*)$/m.exec(words);
  const list = (found?.[2] ?? "").split("; ").filter((word) => word !== "");
  return { levels: Number(found?.[1] ?? 0), words: list };
}

/** Checks the order of roles as a provider does. Returns the error, or undefined. */
function rolesProblem(messages: readonly ServedMessage[]): string | undefined {
  const open: string[] = [];
  let before: ServedMessage["role"] | undefined;
  for (const message of messages) {
    if (message.role === "tool") {
      const at = open.indexOf(message.callId ?? "");
      if (at < 0) return `a result for ${message.callId} that answers no call`;
      open.splice(at, 1);
    } else {
      if (open.length > 0) return `calls without a result: ${open.join(", ")}`;
      if (before === message.role) return `two messages of the ${message.role} in a row`;
      if (before === undefined && message.role !== "user") return "the first message is not the user's";
    }
    open.push(...message.calls.map((made) => made.id));
    before = message.role;
  }
  if (open.length > 0) return `calls without a result: ${open.join(", ")}`;
  return before === "assistant" ? "the last word is the assistant's" : undefined;
}

function keyOf({ sessionKey = "", agentId = "" }: ServedRequest): string {
  return sessionKey === "main" ? `agent:${agentId}:main` : sessionKey;
}

class Model implements CrashModel {
  readonly calls: ModelCall[] = [];
  readonly problems: string[] = [];
  readonly effects = new Map<string, string>();
  readonly #options: CrashModelOptions;
  readonly #open = new Map<string, Set<ModelCall>>();
  readonly #doubts: Promise<void>[] = [];

  constructor(options: CrashModelOptions) {
    this.#options = options;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#doubts);
  }

  answer(request: ServedRequest): Answer {
    const wrong = rolesProblem(request.messages);
    if (wrong !== undefined) this.problems.push(`roles: ${wrong} in ${keyOf(request)}`);
    const number = this.calls.length + 1;
    const luck = dice(`${this.#options.seed} call ${number}`);
    const roll = luck.below(100);
    const marks: string[] = [];
    const said = roll < 6 ? [] : this.#saying(request, luck, number, marks);
    const made = this.#begin(request, number, marks);
    if (roll < 6) {
      made.end = "refused";
      this.#close(made);
      const later = { "retry-after-ms": String(luck.below(50)) };
      return roll < 2 ? httpError(400, `refused ${number}`) : httpError(503, "busy", later, "server_error");
    }
    const answered = mark(() => {
      made.end = "answered";
      this.#close(made);
    });
    const wait = (): Step => pause(sleep(luck.below(LATENCY_MAX_MS)));
    return roll < 8
      ? [wait(), text(`half of t${number} `), drop()]
      : [wait(), ...said.slice(0, 1), wait(), ...said.slice(1), answered];
  }

  #begin(request: ServedRequest, number: number, marks: readonly string[]): ModelCall {
    const sessionKey = keyOf(request);
    const life = String(request.headers["x-life"]);
    const shown = JSON.stringify([sessionKey, request.system, request.messages]);
    const asked = createHash("sha256").update(shown).digest("hex");
    const made: ModelCall = { number, sessionKey, life, asked, end: "open", marks };
    const open = this.#open.get(sessionKey) ?? new Set();
    this.#open.set(sessionKey, open);
    for (const other of open) this.#doubts.push(this.#doubt(other, made));
    open.add(made);
    this.calls.push(made);
    void request.gone.then(() => {
      if (made.end !== "open") return;
      made.end = "cut";
      this.#close(made);
    });
    return made;
  }

  #close(made: ModelCall): void {
    this.#open.get(made.sessionKey)?.delete(made);
  }

  async #doubt(first: ModelCall, second: ModelCall): Promise<void> {
    const { isBroken } = this.#options;
    for (let waitedMs = 0; first.end === "open" && waitedMs < HANG_UP_MS; waitedMs += 50) await sleep(50);
    // A paused process may send one more request before it notices that it has lost its lane. The answer to
    // that request is not stored.
    if (first.end === "cut" || isBroken(first.life) || isBroken(second.life)) return;
    const which = `${first.number} of ${first.life} (${first.end}) and ${second.number} of ${second.life}`;
    this.problems.push(`I1: two model calls of ${second.sessionKey} at once: ${which}`);
  }

  /** Returns the model's answer: the tool calls of the plan's next step, or the final text. */
  #saying(request: ServedRequest, luck: Dice, number: number, marks: string[]): Step[] {
    const { messages, step } = request;
    const plan = step === "message" || step === "subagent" || step === undefined;
    const { levels, words } = plan ? planIn(request.lastUserText) : { levels: 0, words: [] };
    const asked = messages.findLastIndex((message) => message.role === "user");
    const stage = messages.slice(asked + 1).filter((message) => message.role === "assistant").length;
    const word = words[stage];
    if (word === undefined) return [this.#final(request, luck, number, marks)];
    const does = { request, luck, number, levels, marks };
    const calls = word.split("+").flatMap((one, at) => this.#calls(one, does, at));
    return luck.chance(0.3) ? [text(`I will ${word} ${number}. `), ...calls] : calls;
  }

  #final({ step }: ServedRequest, luck: Dice, number: number, marks: string[]): Step {
    const silence = { reply: 0.5, announce: 0.4, subagentAnnounce: 0.2, message: 0.05, subagent: 0 };
    if (step !== undefined && luck.chance(silence[step])) {
      return text(step === "reply" || step === "message" ? "REPLY_SKIP" : "ANNOUNCE_SKIP");
    }
    const said = `t${number}. ${"And so it is. ".repeat(luck.below(20))}`.trim();
    marks.push(said);
    return text(said, 1 + luck.below(4));
  }

  #calls(
    word: string,
    does: { request: ServedRequest; luck: Dice; number: number; levels: number; marks: string[] },
    at: number,
  ): Step[] {
    const { request, luck, number, levels, marks } = does;
    const [verb = "", ...more] = word.split(" ");
    const has = (tool: string): boolean => request.toolNames.includes(tool);
    const one = (name: string, args: Record<string, unknown>, index = at): Step => {
      const id = `call_${number}_${index}`;
      marks.push(id);
      return call(name, args, id);
    };
    const said = (index: number): string =>
      `m${number}.${index} ${planText(luck, Math.max(0, levels - 1), this.#options.sessions)}`;
    if (verb === "send" && has("sessions_send")) {
      const [sessionKey, seconds] = more;
      return [one("sessions_send", { sessionKey, message: said(0), timeoutSeconds: Number(seconds) })];
    }
    if (verb === "spawn" && has("sessions_spawn")) {
      const jobs = Array.from({ length: Number(more[0]) }, (_, index) => index);
      return jobs.map((index) => one("sessions_spawn", { task: said(index), cleanup: more[1] }, index));
    }
    if (verb === "write") return [one("write", { path: `notes/n${number}.txt`, content: `n${number}` })];
    if (verb === "list" && has("sessions_list")) return [one("sessions_list", { limit: 5 })];
    const effect = `e${number}.${at}`;
    this.effects.set(effect, `call_${number}_${at}`);
    // The command sleeps after its side effect, so that a crash hits commands that are still running.
    const rest = `sleep 0.${String(luck.below(120)).padStart(3, "0")}`;
    return [one("exec", { command: `echo ${effect} >> ${this.#options.effectsFile}; ${rest}` })];
  }
}

export function openCrashModel(options: CrashModelOptions): CrashModel {
  return new Model(options);
}
