// One client of a crash test: it sends messages, waits for runs, stops runs, resets sessions, and records the
// answers. It repeats every request that a dead process left unanswered, with the same key, until it gets an
// answer: over a client that reconnects by itself, or over a new connection to any living process. At the end
// the answers are compared with the store. One more client is the owner, who answers permission requests.

import { type GatewayClient, GatewayError } from "../../../src/contract/client/node.ts";
import type { MethodName, ParamsOf, PayloadOf } from "../../../src/contract/methods.ts";
import { isObject } from "../../../src/core/json.ts";
import { type Dice, dice } from "../dice.ts";
import type { Fleet } from "../process/fleet.ts";
import { PATIENCE_MS } from "../until.ts";
import { effectOf, planText } from "./model.ts";

/** Pause before an unanswered request is repeated. */
const AGAIN_MS = 40;
/** Maximum number of unfinished runs before the load pauses. */
const OPEN_MAX = 50;

/** State that all clients of a crash test share. */
export interface Told {
  /** Sessions to which clients may write: the main sessions, and sessions created during the test. */
  readonly sessions: string[];
  /** Sessions that a client deletes or has deleted. Answers that name one may lose their texts. */
  readonly deleted: Set<string>;
  /** The final status of each accepted run by its id; undefined while the status is unknown. */
  readonly accepted: Map<string, string | undefined>;
  /** Violations found so far. */
  readonly problems: string[];
  /** Number of refusals by error code. */
  readonly refusals: Map<string, number>;
  readonly repeats: { count: number };
  /** Number of answered requests of all clients. */
  readonly answers: { count: number };
  /** Side effects that the owner was asked about, by his answer. */
  readonly decided: Readonly<Record<"allow" | "deny", Set<string>>>;
}

export interface TalkerOptions {
  readonly name: string;
  readonly fleet: Fleet;
  readonly luck: Dice;
  readonly told: Told;
  /**
   * True: keeps one client that reconnects automatically. False: opens a new connection to any process after
   * each disconnect.
   */
  readonly steadfast: boolean;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Asked = { readonly method: MethodName; readonly params: object; readonly answer: unknown };

/** After these error codes the same request is repeated. */
const PASSING = new Set(["CLOSED", "UNREACHABLE", "RATE_LIMITED"]);

export class Talker {
  readonly #options: TalkerOptions;
  #client: GatewayClient | undefined;
  #number = 0;
  /** Answered requests that had an idempotency key. */
  readonly #done: Asked[] = [];
  #stoppedAt: number | undefined;

  constructor(options: TalkerOptions) {
    this.#options = options;
  }

  /** Sends requests until `stop`. Resolves when the last one has an answer. */
  async talk(): Promise<void> {
    while (this.#stoppedAt === undefined) {
      try {
        await this.#doSomething();
      } catch (error) {
        if (this.#isRefusal(error)) continue;
        this.#problem(error instanceof Error ? (error.stack ?? error.message) : String(error));
        return;
      }
    }
  }

  /** Sends a message whose run executes a command in this session. */
  async command(sessionKey: string): Promise<void> {
    const key = this.#key();
    await this.#ask("chat.send", { sessionKey, message: `${key} PLAN/0 exec`, idempotencyKey: key });
    this.#accept(key);
  }

  /** Answers the permission requests of agents until `stop`. */
  async decide(): Promise<void> {
    while (this.#stoppedAt === undefined) {
      try {
        const { permissions } = await this.#ask("permissions.list", {});
        for (const { id, title } of permissions) await this.#decideOne(id, title);
      } catch (error) {
        this.#problem(error instanceof Error ? (error.stack ?? error.message) : String(error));
        return;
      }
      await sleep(AGAIN_MS);
    }
  }

  async #decideOne(id: string, command: string): Promise<void> {
    const { name, told } = this.#options;
    const luck = dice(`${name} ${id}`);
    const decision = luck.chance(0.3) ? "deny" : "allow";
    const scope = decision === "allow" && luck.chance(0.2) ? "session" : "once";
    try {
      await this.#ask("permissions.answer", { id, decision, scope, idempotencyKey: `${name}-${id}` });
      const effect = effectOf(command);
      if (effect === undefined) throw new Error(`nobody asked the agent to run: ${command}`);
      told.decided[decision].add(effect);
    } catch (error) {
      // The run may have ended after the list was read.
      if (!(error instanceof GatewayError) || error.details.code !== "permission_not_found") throw error;
    }
  }

  stop(): void {
    this.#stoppedAt = Date.now();
  }

  #isLate(): boolean {
    return this.#stoppedAt !== undefined && Date.now() > this.#stoppedAt + PATIENCE_MS;
  }

  close(): void {
    this.#client?.close();
  }

  #problem(text: string): void {
    this.#options.told.problems.push(`${this.#options.name}: ${text}`);
  }

  /**
   * Returns true if a refusal is a valid answer. It is not if it claims that another caller owns the key or
   * that the run is unknown, or if it is an internal error.
   */
  #isRefusal(error: unknown): boolean {
    if (!(error instanceof GatewayError) || PASSING.has(error.code)) return false;
    const code = String(error.details.code ?? error.code);
    const { refusals } = this.#options.told;
    refusals.set(code, (refusals.get(code) ?? 0) + 1);
    return code !== "idempotency_conflict" && code !== "internal" && code !== "run_not_found";
  }

  async #link(): Promise<GatewayClient> {
    const { fleet, luck, steadfast } = this.#options;
    for (;;) {
      if (this.#client !== undefined && this.#client.state !== "closed") return this.#client;
      const up = fleet.up();
      const at = up.length > 0 ? luck.of(up) : 0;
      try {
        this.#client = await fleet.connect(at, { reconnect: steadfast, connectTimeoutMs: 3_000 });
      } catch (error) {
        if (this.#isLate()) throw new Error(`nobody to connect to: ${String(error)}`);
        await sleep(AGAIN_MS);
      }
    }
  }

  /** Repeats the request until it is answered. */
  async #ask<M extends MethodName>(method: M, params: ParamsOf<M>): Promise<PayloadOf<M>> {
    for (let tries = 0; ; tries += 1) {
      const client = await this.#link();
      if (tries === 1) this.#options.told.repeats.count += 1;
      try {
        const answer = await client.call<PayloadOf<M>>(method, params as object);
        this.#options.told.answers.count += 1;
        if (Reflect.get(params as object, "idempotencyKey") !== undefined) {
          this.#done.push({ method, params: params as object, answer });
        }
        return answer;
      } catch (error) {
        const passing = error instanceof GatewayError && (PASSING.has(error.code) || error.retryable);
        if (!passing) throw error;
        if (this.#isLate()) throw new Error(`${method} was never answered: ${error.message}`);
        await sleep(AGAIN_MS);
      }
    }
  }

  #key(): string {
    this.#number += 1;
    return `${this.#options.name}-${this.#number}`;
  }

  #message(key: string): string {
    const { luck, told } = this.#options;
    return `${key} ${planText(luck, 2, told.sessions)}`;
  }

  async #doSomething(): Promise<void> {
    const { luck, told } = this.#options;
    const unknown = [...told.accepted].filter(([, end]) => end === undefined).map(([runId]) => runId);
    if (unknown.length > OPEN_MAX) return this.#awaitEnd(unknown[0] ?? "");
    const roll = luck.below(100);
    if (roll < 40) return this.#chat();
    if (roll < 52) return this.#agent();
    if (roll < 57) return this.#invoke();
    if (roll < 60) return this.#inject();
    if (roll < 68) return this.#abort(unknown);
    if (roll < 73) return this.#reset();
    if (roll < 78) return this.#create();
    if (roll < 80) return this.#delete();
    if (roll < 88) return this.#repeat();
    if (roll < 95) return this.#awaitEnd(luck.of([...told.accepted.keys(), ""]));
    await this.#ask("chat.history", { sessionKey: luck.of(told.sessions), limit: 50 });
  }

  async #chat(): Promise<void> {
    const { luck, told } = this.#options;
    const key = this.#key();
    const sessionKey = luck.of(told.sessions);
    const message = this.#message(key);
    // The timeout is sometimes shorter than the work. In that case the run ends as `timeout`.
    const limit = luck.chance(0.1) ? { timeoutMs: 50 + luck.below(500) } : {};
    const params = { sessionKey, message, idempotencyKey: key, ...limit };
    const { runId } = await this.#ask("chat.send", params);
    if (runId !== key) this.#problem(`chat.send ${key} was answered with ${runId}`);
    this.#accept(key);
    if (luck.chance(0.4)) await this.#awaitEnd(key);
  }

  async #agent(): Promise<void> {
    const { luck, told } = this.#options;
    const key = this.#key();
    const sessionKey = luck.of(told.sessions);
    const params = { sessionKey, message: this.#message(key), idempotencyKey: key };
    const client = await this.#link();
    const asked = client.agent(params);
    try {
      const { runId } = await asked.accepted;
      if (runId !== key) this.#problem(`agent ${key} was answered with ${runId}`);
      this.#accept(key);
      const end = await asked.done;
      if (end.runId !== key) this.#problem(`the end of ${key} is that of ${end.runId}`);
    } catch (error) {
      if (!(error instanceof GatewayError) || !PASSING.has(error.code)) throw error;
      await this.#ask("agent", params);
      this.#accept(key);
    }
    await this.#awaitEnd(key);
  }

  /** Sends to a session on behalf of another session, as an operator, without waiting for the answer. */
  async #invoke(): Promise<void> {
    const { luck, told } = this.#options;
    const key = this.#key();
    const [sessionKey, target] = [luck.of(told.sessions), luck.of(told.sessions)];
    const args = { sessionKey: target, message: this.#message(key), timeoutSeconds: luck.of([0, 0.5, 2]) };
    const params = { name: "sessions_send", arguments: args, sessionKey, idempotencyKey: key };
    const { runId } = await this.#ask("tools.invoke", params);
    if (typeof runId === "string") this.#accept(runId);
  }

  async #inject(): Promise<void> {
    const key = this.#key();
    const sessionKey = this.#options.luck.of(this.#options.told.sessions);
    await this.#ask("chat.inject", { sessionKey, message: `note ${key}`, idempotencyKey: key });
    this.#accept(key);
  }

  #accept(runId: string): void {
    const { accepted } = this.#options.told;
    if (!accepted.has(runId)) accepted.set(runId, undefined);
  }

  /** Waits for the end of a run, over several connections if necessary. */
  async #awaitEnd(runId: string): Promise<void> {
    const { luck, told } = this.#options;
    if (runId === "") return;
    for (;;) {
      // Read before the request, because another client may learn a newer status during the request.
      const before = told.accepted.get(runId);
      const answer = await this.#ask("agent.wait", { runId, timeoutMs: 100 + luck.below(1_500) });
      if (answer.status !== "timeout") {
        told.accepted.set(runId, answer.runStatus);
        if (before !== undefined && before !== answer.runStatus) {
          this.#problem(`${runId} was ${before} and is ${answer.runStatus}`);
        }
        return;
      }
      if (before !== undefined) this.#problem(`${runId} had ended (${before}) and is ${answer.runStatus}`);
      // Stops waiting for some runs, because a run may be far back in its lane.
      if (this.#stoppedAt !== undefined || luck.chance(0.3)) return;
    }
  }

  async #abort(unknown: readonly string[]): Promise<void> {
    const { luck, told } = this.#options;
    const [runId] = luck.chance(0.5) && unknown.length > 0 ? [luck.of(unknown)] : [];
    const params = { sessionKey: luck.of(told.sessions), idempotencyKey: this.#key() };
    await this.#ask("chat.abort", runId === undefined ? params : { ...params, runId });
  }

  async #reset(): Promise<void> {
    const { luck, told } = this.#options;
    await this.#ask("sessions.reset", { key: luck.of(told.sessions), idempotencyKey: this.#key() });
  }

  async #create(): Promise<void> {
    const { luck, told } = this.#options;
    const agentId = luck.of(["main", "alpha", "beta"]);
    const { key } = await this.#ask("sessions.create", { agentId, idempotencyKey: this.#key() });
    told.sessions.push(key);
  }

  async #delete(): Promise<void> {
    const { luck, told } = this.#options;
    const key = luck.of(told.sessions.filter((one) => one.includes(":chat:")).concat(""));
    if (key === "") return;
    told.sessions.splice(told.sessions.indexOf(key), 1);
    told.deleted.add(key);
    await this.#ask("sessions.delete", {
      key,
      deleteTranscript: luck.chance(0.5),
      idempotencyKey: this.#key(),
    });
  }

  /** Repeats an old request with the same key, and expects the same answer, without texts of deleted sessions. */
  async #repeat(): Promise<void> {
    const { luck, told } = this.#options;
    const before = this.#done.length === 0 ? undefined : luck.of(this.#done);
    if (before === undefined) return;
    const again = await this.#ask(before.method, before.params as ParamsOf<MethodName>);
    const [now, then] = [JSON.stringify(again), JSON.stringify(before.answer)];
    if (now === then) return;
    const names = (key: string) => then.includes(JSON.stringify(key));
    if ([...told.deleted].some(names) && isAnswerWithoutTexts(again, before.answer)) return;
    this.#problem(`${before.method}: ${now} after ${then}`);
  }
}

/** Returns whether an answer is an earlier one without some texts: ids, keys, codes and states must stay. */
function isAnswerWithoutTexts(now: unknown, then: unknown, field = ""): boolean {
  if (now === then) return true;
  if (typeof then === "string") return now === "" && !/(?:id|key|code|status|state)$/i.test(field);
  if (!isObject(now) || !isObject(then)) return false;
  const fields = Object.keys(then);
  return (
    Object.keys(now).join() === fields.join() &&
    fields.every((name) => isAnswerWithoutTexts(now[name], then[name], name))
  );
}
