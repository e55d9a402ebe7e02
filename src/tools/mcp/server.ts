// Owns one MCP server: starts it when it is first needed, and restarts it after it has ended.
// - All runs share one process of a server (over HTTP: one session).
// - It is started only when it is needed. After each failure the pause grows: a server that never works is
//   started at most once every five minutes, unless an operator tests it.
// - A caller waits only until its limit; the start continues in the background.
// - `close` ends the server's process, and the server is not started again. `retire` waits for its users
//   first.
// - Pauses and waits are measured on the monotonic clock: the wall clock can be set back, and they must not
//   become longer then. Only times that people see are of the wall clock.

import { grownPause } from "../../core/backoff.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import { pause, timeLimit, within } from "../../world/pause.ts";
import type { OutsideServerStatus } from "../tool.ts";
import type { Asker } from "./asking.ts";
import { type CallEnd, Connection } from "./connection.ts";
import type { Definition, Definitions } from "./definitions.ts";
import { httpLink } from "./http.ts";
import { type Mask, maskOf, plainLine } from "./plain-text.ts";
import { SignIn, wantsSignIn } from "./sign-in/sign-in.ts";
import { StartFailure, startProblem, untilAborted } from "./start-failure.ts";
import { StdioLink } from "./stdio.ts";
import type { Link, OutsideWorld } from "./transport.ts";

const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 300_000;
/** If the server is restarted within this time, calls wait for the restart. Otherwise they fail at once. */
const PAUSE_WAITED_MAX_MS = 1_500;
/** If the server ends after this uptime, it is restarted without backoff. */
const HEALTHY_MS = 60_000;
/** An HTTP server may be unable to announce a changed list, so the list is read again after this time. */
const LIST_FRESH_MS = 60_000;
const LIST_TIMEOUT_MS = 30_000;
/** Maximum number of calls without an answer. */
const CALLS_MAX = 64;
const WORDS_SHOWN_MAX_CHARS = 400;
const NAMED_IN_LOG_MAX = 20;

export interface ServerParts {
  readonly settings: McpServerSettings;
  readonly world: OutsideWorld;
  /** The version of Parley. */
  readonly version: string;
  /** The folder of the store, which has the sign-ins. Absent: there are none. */
  readonly dir?: string | undefined;
  /** The environment of every MCP server's program. */
  readonly environment: Readonly<Record<string, string>>;
}

interface Live {
  readonly connection: Connection;
  /** Time of the wall clock at which the server was ready. */
  readonly sinceMs: number;
  /** The same time, on the monotonic clock. */
  readonly readyAtMs: number;
  definitions: Definitions;
  /** On the monotonic clock. */
  listedAtMs: number;
  listing: Promise<void> | undefined;
}

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "starting"; readonly ready: Promise<Result<Live>> }
  | { readonly kind: "ready"; readonly live: Live }
  /** `untilMs`: on the monotonic clock. `atMs`: on the wall clock. */
  | { readonly kind: "down"; readonly untilMs: number; readonly atMs: number; readonly why: Failure }
  | { readonly kind: "closed" };

/** How long a caller waits, and the signal that ends the wait earlier. */
export interface Patience {
  /** On the monotonic clock. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

/** The same for a call. */
export interface CallPatience extends Patience {
  /** Waits until the call may be sent; false: it may not. Called once the server is ready, each time. */
  mayAct(): Promise<boolean>;
  /** Answers the questions of the server during the call. */
  readonly asker?: Asker;
}

export class Server {
  readonly settings: McpServerSettings;
  /** Absent if nobody can sign in at this server. */
  readonly signIn: SignIn | undefined;
  /** Hides the known secrets of this server in its texts. */
  readonly mask: Mask;
  readonly #parts: ServerParts;
  #state: State = { kind: "idle" };
  #failures = 0;
  #isOld = false;
  #calls = 0;
  #users = 0;
  readonly #unused = new Set<() => void>();
  /** Open links, including those of failed starts. */
  readonly #links = new Set<Link>();
  #known: Definitions = { tools: [], leftOut: [] };

  constructor(parts: ServerParts) {
    const { dir, settings, world } = parts;
    this.settings = settings;
    this.signIn = dir === undefined ? undefined : SignIn.of(settings, dir, world);
    this.#parts = parts;
    this.mask = maskOf(settings, world.redactor, this.signIn);
  }

  get name(): string {
    return this.settings.name;
  }

  /** The tools of the list that was read last. */
  get known(): Definitions {
    return this.#known;
  }

  status(): OutsideServerStatus {
    const state = this.#state;
    const server = this.name;
    const needsSignIn = this.signIn?.isNeeded === true;
    switch (state.kind) {
      case "ready": {
        const { sinceMs: connectedSince, definitions } = state.live;
        const tools = definitions.tools.length;
        const need = needsSignIn ? { needsSignIn, lastError: wantsSignIn(server) } : {};
        return { server, state: "ready", connectedSince, tools, ...need };
      }
      case "down": {
        const { untilMs, atMs: lastErrorAt, why } = state;
        const { clock } = this.#parts.world;
        const leftMs = Math.ceil(untilMs - clock.monotonic());
        const waits = leftMs > 0 ? { backoffUntil: clock.now() + leftMs } : {};
        return { server, state: "down", lastError: why.error, lastErrorAt, needsSignIn, ...waits };
      }
      case "closed":
        return { server, state: "idle" };
      default:
        return { server, state: state.kind };
    }
  }

  /** Ends the pause after a failure, because an operator wants to know now whether the server works. */
  endPause(): void {
    if (this.#state.kind === "down") this.#state = { ...this.#state, untilMs: 0 };
  }

  /** Returns the server's current tools, or a failure. */
  async tools(patience: Patience): Promise<Result<Definitions>> {
    const live = await this.#ready(patience);
    if (!live.ok) return live;
    await this.#refresh(live.value, patience);
    return ok(live.value.definitions);
  }

  /** Makes a call. Repeats a lost call once if the tool is repeatable. */
  async call(
    tool: Definition,
    args: Readonly<Record<string, unknown>>,
    patience: CallPatience,
  ): Promise<CallEnd> {
    if (this.#calls >= CALLS_MAX)
      return { kind: "unsent", error: `it has ${CALLS_MAX} unanswered calls, the maximum`, link: "same" };
    this.#calls += 1;
    try {
      const first = await this.#callOnce(tool, args, patience);
      const mayRepeat =
        (first.kind === "unsent" && first.link === "new") || (first.kind === "lost" && tool.repeatable);
      if (!mayRepeat || patience.signal.aborted) return first;
      const second = await this.#callOnce(tool, args, patience);
      // The first call may still have taken effect, so its outcome is returned.
      return second.kind === "unsent" ? first : second;
    } finally {
      this.#calls -= 1;
    }
  }

  async #callOnce(
    tool: Definition,
    args: Readonly<Record<string, unknown>>,
    patience: CallPatience,
  ): Promise<CallEnd> {
    const live = await this.#ready(patience);
    if (patience.signal.aborted) return { kind: "aborted" };
    if (!live.ok) return { kind: "unsent", error: live.error, link: "same" };
    if (!(await patience.mayAct())) return { kind: "aborted" };
    const end = await live.value.connection.call(tool, args, patience);
    switch (end.kind) {
      case "unsent":
        if (end.link !== "same") this.#takeEnd(live.value, end.error, end.link === "new");
        return { ...end, error: this.#fit(end.error) };
      case "lost":
      case "refused":
        return { ...end, error: this.#fit(end.error) };
      default:
        return end;
    }
  }

  /** Keeps the server from being closed by `retire` during this work. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    this.#users += 1;
    try {
      return await work();
    } finally {
      this.#users -= 1;
      if (this.#users === 0) for (const end of this.#unused) end();
    }
  }

  /** Stops the server permanently, once it has no user. */
  async retire(): Promise<void> {
    if (this.#users > 0) await new Promise<void>((resolve) => this.#unused.add(resolve));
    await this.close();
  }

  /** Stops the server permanently. */
  async close(): Promise<void> {
    this.#state = { kind: "closed" };
    await Promise.all([...this.#links].map((link) => link.close().catch(() => {})));
  }

  /** Redacts and cuts an error text, for models and logs. */
  #fit(text: string): string {
    return plainLine(this.mask(text), WORDS_SHOWN_MAX_CHARS);
  }

  async #ready({ untilMs, signal }: Patience): Promise<Result<Live>> {
    const { clock } = this.#parts.world;
    const state = this.#state;
    const now = clock.monotonic();
    if (state.kind === "down" && state.untilMs > now) {
      if (state.untilMs > Math.min(untilMs, now + PAUSE_WAITED_MAX_MS)) return state.why;
      await pause(clock, state.untilMs - now, signal);
      if (signal.aborted) return fail("run_aborted", "the run was aborted");
    }
    const ready = this.#beginStart();
    if (ready.kind === "settled") return ready.value;
    const stillStarting = fail("mcp_unavailable", "it is still starting");
    const leftMs = untilMs - clock.monotonic();
    if (leftMs <= 0) return stillStarting;
    return (await within(clock, leftMs, ready.value, { signal })) ?? stillStarting;
  }

  /** Returns the current state, or the start that is under way. Starts the server if needed. */
  #beginStart():
    | { readonly kind: "settled"; readonly value: Result<Live> }
    | { readonly kind: "starting"; readonly value: Promise<Result<Live>> } {
    const state = this.#state;
    switch (state.kind) {
      case "ready":
        return { kind: "settled", value: ok(state.live) };
      case "starting":
        return { kind: "starting", value: state.ready };
      case "closed":
        return { kind: "settled", value: fail("shutting_down", "the gateway is stopping") };
      case "down":
        if (state.untilMs > this.#parts.world.clock.monotonic()) return { kind: "settled", value: state.why };
        break;
      case "idle":
    }
    const ready = this.#start();
    this.#state = { kind: "starting", ready };
    return { kind: "starting", value: ready };
  }

  async #start(): Promise<Result<Live>> {
    const { world, settings } = this.#parts;
    using limit = timeLimit(world.clock, settings.startTimeoutSeconds * 1_000);
    const startedMs = world.clock.monotonic();
    try {
      const live = await this.#attempt(limit.signal);
      if (this.#state.kind === "closed") return fail("shutting_down", "the gateway is stopping");
      this.#state = { kind: "ready", live };
      const tools = live.definitions.tools.length;
      world.log.info(
        { server: this.name, tools, ms: Math.round(world.clock.monotonic() - startedMs) },
        "an MCP server is ready",
      );
      return ok(live);
    } catch (error) {
      if (this.#state.kind === "closed") return fail("shutting_down", "the gateway is stopping");
      const { why, said } = limit.signal.aborted
        ? { why: `it was not ready after ${settings.startTimeoutSeconds} s`, said: "" }
        : startProblem(error, settings);
      const more = said === "" ? {} : { said: this.#fit(said) };
      world.log.warn({ server: this.name, why: this.#fit(why), ...more }, "an MCP server did not start");
      return this.#fell(`it did not start: ${this.#fit(why)}`, more);
    }
  }

  /**
   * Makes the handshake and reads the list. If the newer handshake made the program exit, repeats both with
   * the older handshake.
   */
  async #attempt(late: AbortSignal): Promise<Live> {
    try {
      return await this.#connect(late, this.#isOld);
    } catch (error) {
      const cause = error instanceof StartFailure ? error.cause : error;
      const closed = (cause as { code?: unknown }).code === "ERA_NEGOTIATION_FAILED";
      const isProgram = this.#parts.settings.reach.kind === "stdio";
      if (this.#isOld || !closed || !isProgram || late.aborted || this.#state.kind === "closed") throw error;
      return this.#connect(late, true);
    }
  }

  async #connect(late: AbortSignal, isOld: boolean): Promise<Live> {
    const { settings, world, version } = this.#parts;
    const link = await this.#makeLink();
    this.#links.add(link);
    let live: Live | undefined;
    let words = "";
    const stop = (): void => {
      void link
        .close()
        .catch(() => {})
        .finally(() => this.#links.delete(link));
    };
    late.addEventListener("abort", stop, { once: true });
    try {
      if (late.aborted || this.#state.kind === "closed") throw new Error("it is no longer needed");
      const opening = Connection.open(link, { settings, world, version, isOld }, () => {
        words = link.lastWords();
        this.#links.delete(link);
        if (live !== undefined) this.#takeEnd(live, "it stopped", false);
      });
      const connection = await untilAborted(opening, late);
      this.#isOld = connection.isOld;
      const definitions = await connection.list(late);
      const times = { sinceMs: world.clock.now(), readyAtMs: world.clock.monotonic(), listedAtMs: 0 };
      live = { connection, ...times, definitions, listing: undefined };
      this.#took(live, definitions);
      return live;
    } catch (error) {
      stop();
      throw new StartFailure(error, link.lastWords() || words);
    } finally {
      late.removeEventListener("abort", stop);
    }
  }

  async #makeLink(): Promise<Link> {
    const { settings, world, environment } = this.#parts;
    const { reach } = settings;
    if (reach.kind === "http") return httpLink({ ...reach, world, signIn: this.signIn });
    const env = { ...environment, ...reach.env };
    let noise = 0;
    return new StdioLink({
      ...reach,
      env,
      world,
      onNoise: (what) => {
        noise += 1;
        if (noise === 1) {
          world.log.warn(
            { server: this.name, why: what },
            "an MCP server wrote output that is not a message",
          );
        }
      },
    });
  }

  #took(live: Live, definitions: Definitions): void {
    live.definitions = definitions;
    live.listedAtMs = this.#parts.world.clock.monotonic();
    const before = new Set(this.#known.leftOut.map(({ tool, why }) => `${tool} ${why}`));
    const news = definitions.leftOut.filter(({ tool, why }) => !before.has(`${tool} ${why}`));
    for (const { tool, why } of news.slice(0, NAMED_IN_LOG_MAX)) {
      const { log } = this.#parts.world;
      log.warn({ server: this.name, tool: this.#fit(tool), why }, "a tool of an MCP server is left out");
    }
    this.#known = definitions;
  }

  /** Reads the list again if it may have changed. If that fails, keeps the old one. */
  async #refresh(live: Live, { untilMs, signal }: Patience): Promise<void> {
    const { world, settings } = this.#parts;
    const nowMs = world.clock.monotonic();
    const mayBeOld = settings.reach.kind === "http" && nowMs - live.listedAtMs >= LIST_FRESH_MS;
    if (!live.connection.listIsOld && !mayBeOld) return;
    live.listing ??= this.#list(live).finally(() => {
      live.listing = undefined;
    });
    await within(world.clock, untilMs - nowMs, live.listing, { signal });
  }

  async #list(live: Live): Promise<void> {
    const { world } = this.#parts;
    using limit = timeLimit(world.clock, LIST_TIMEOUT_MS, { reason: "no list in time" });
    try {
      this.#took(live, await live.connection.list(limit.signal));
    } catch (error) {
      live.connection.listIsOld = true;
      const why = this.#fit(error instanceof Error ? error.message : String(error));
      world.log.warn({ server: this.name, why }, "an MCP server did not give its list of tools");
    }
  }

  /** Handles a connection that has ended, or that a call found broken. */
  #takeEnd(live: Live, why: string, restartAtOnce: boolean): void {
    const isCurrent = this.#state.kind === "ready" && this.#state.live === live;
    if (!isCurrent) return;
    const { world } = this.#parts;
    if (restartAtOnce) this.#state = { kind: "idle" };
    else {
      if (world.clock.monotonic() - live.readyAtMs >= HEALTHY_MS) this.#failures = 0;
      const words = live.connection.lastWords();
      const more = words === "" ? {} : { said: this.#fit(words) };
      world.log.warn({ server: this.name, why: this.#fit(why), ...more }, "an MCP server's connection ended");
      this.#fell(`its connection ended: ${this.#fit(why)}`, {});
    }
    void live.connection.close().catch(() => {});
  }

  #fell(why: string, details: { said?: string }): Failure {
    const { world } = this.#parts;
    this.#failures += 1;
    const grownMs = grownPause(PAUSE_FIRST_MS, PAUSE_MAX_MS, this.#failures - 1);
    const pauseMs = Math.round(grownMs * (0.75 + world.random() / 2));
    const failure = fail("mcp_unavailable", why, { details });
    const untilMs = world.clock.monotonic() + pauseMs;
    this.#state = { kind: "down", untilMs, atMs: world.clock.now(), why: failure };
    return failure;
  }
}
