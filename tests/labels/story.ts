// Plays random stories of labels in a real gateway, with its store, engine and tools, beside a plain model that
// keeps sets of sources. Every source of the plain model must be among the labels of the real session, and
// nothing may leave that the plain model knows to be outside and private. An owner denies every question.

import { globSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { labelsKnownTo } from "../../src/core/rules/labels/labels.ts";
import { LABELS, type Label } from "../../src/core/shapes/labels.ts";
import { getSession } from "../../src/store/queries/sessions/sessions.ts";
import { cleanUp } from "../kit/cleanup.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { FAILS, type Step } from "./obedient.ts";
import { GUEST_SESSION, MAIN } from "./stage.ts";
import { openTown, type Servers, type Town } from "./town.ts";

const CODER = "agent:coder:main";
const RUNS_MAX = 7;
const ACTIONS_MAX = 3;
/** Sends and spawns within each other. */
const DEPTH_MAX = 2;
/** A file that the owner has written. */
const FIRST_FILE = "f0.md";
const GUEST = "guest telegram:222";
const PEER = "peer acme";
const SERVERS: Servers = { a: { read: {} }, b: { read: {} } };

type Sources = Readonly<Record<Label, Set<string>>>;

const noSources = (): Sources => ({ outside: new Set(), private: new Set() });

function flow(from: Sources, to: Sources): void {
  for (const label of LABELS) for (const source of from[label]) to[label].add(source);
}

const isLabelled = (...places: readonly Sources[]): boolean =>
  LABELS.every((label) => places.some((place) => place[label].size > 0));

class Story {
  readonly #luck: Dice;
  readonly #seed: number;
  readonly #sessions = new Map<string, Sources>(
    [MAIN, CODER, GUEST_SESSION].map((key) => [key, noSources()]),
  );
  /** Files of a workspace, with whether a run with outside content wrote them. */
  readonly #files = new Map([[`main/${FIRST_FILE}`, false]]);
  /** Names of files that came with the task of a sub-agent, with whether its requester had outside content. */
  readonly #attached = new Map<string, boolean>();
  /** Addresses of the thief that nobody may reach. */
  readonly #forbidden = new Set<string>();
  #forks: string[] = [];
  #plans = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#luck = dice(`story ${seed}`);
  }

  #sources(key: string): Sources {
    const known = this.#sessions.get(key) ?? noSources();
    this.#sessions.set(key, known);
    return known;
  }

  #isOwners(key: string): boolean {
    return key !== GUEST_SESSION;
  }

  /** Lets a session accept a run of a chain. */
  #begin(key: string, chain: Sources, isChild = false): Sources {
    const session = this.#sources(key);
    flow(chain, session);
    flow(session, chain);
    if (this.#isOwners(key) && !isChild) chain.private.add(`session ${key}`);
    return session;
  }

  /** Makes a plan for a run of a session, and lets the plain model carry it out. */
  #plan(
    town: Town,
    key: string,
    chain: Sources,
    { depth = 0, isChild = false, name = `s${this.#seed}-${this.#plans++}` } = {},
  ): string {
    const session = this.#begin(key, chain, isChild);
    const own = noSources();
    if (this.#isOwners(key) && !isChild) own.private.add(`session ${key}`);
    const learn = (label: Label, source: string): void => {
      session[label].add(source);
      chain[label].add(source);
    };
    const agent = key.startsWith("agent:coder:") ? "coder" : "main";
    const steps: Step[] = [];
    let isOver = false;
    const actions: readonly (() => void)[] = [
      () => {
        const server = this.#luck.of(["a", "b"]);
        steps.push([`mcp__${server}__read`, {}]);
        learn("outside", `mcp ${server}`);
      },
      () => {
        const path = `f${this.#luck.below(3)}.md`;
        const isOutside = this.#files.get(`${agent}/${path}`);
        if (isOutside === undefined) return;
        steps.push(["read", { path }]);
        if (isOutside) learn("outside", `file ${path}`);
        if (!this.#isOwners(key) || isChild) learn("private", `file ${path}`);
      },
      () => {
        const [found] = globSync(".parley/attachments/*/*.md", { cwd: join(town.folder, agent) });
        if (found === undefined) return;
        steps.push(["read", { path: found }]);
        const isOutside = this.#attached.get(`${agent}/${basename(found)}`) === true;
        if (isOutside) learn("outside", `file ${dirname(found)}`);
        if (!this.#isOwners(key) || isChild) learn("private", `file ${found}`);
      },
      () => {
        const path = `f${this.#luck.below(3)}.md`;
        steps.push(["write", { path, content: `text of ${name}` }]);
        this.#files.set(`${agent}/${path}`, session.outside.size + chain.outside.size > 0);
      },
      () => {
        const path = `/${name}-${steps.length}`;
        steps.push(["fetch", { url: town.thief(path) }]);
        if (isLabelled(session, chain, own)) this.#forbidden.add(path);
        else learn("outside", `web ${new URL(town.thief("/")).host}`);
      },
      () => {
        const target = this.#luck.of([MAIN, CODER, GUEST_SESSION].filter((one) => one !== key));
        if (depth >= DEPTH_MAX || isChild) return;
        // A message to a session of guests is a sink.
        if (!this.#isOwners(target) && isLabelled(session, chain, own)) return;
        const inner = this.#plan(town, target, chain, { depth: DEPTH_MAX });
        steps.push(["sessions_send", { sessionKey: target, message: `Do it. #${inner}` }]);
        flow(chain, session);
      },
      () => {
        if (depth >= DEPTH_MAX || isChild) return;
        const child = `agent:${agent}:child-of-${name}-${steps.length}`;
        const file = `${name}-${steps.length}.md`;
        const isOutside = session.outside.size + chain.outside.size > 0;
        const inner = this.#plan(town, child, chain, { depth: DEPTH_MAX, isChild: true });
        this.#sessions.delete(child);
        const attachments = [{ name: file, content: `text of ${name}` }];
        steps.push(["sessions_spawn", { task: `Do it. #${inner}`, attachments }]);
        this.#attached.set(`${agent}/${file}`, isOutside);
        // Without a wait, the result arrives by an announcement after the run.
        isOver = depth === 0 && this.#luck.chance(0.5);
        if (!isOver) steps.push(["subagents", { action: "wait" }]);
        flow(chain, session);
      },
      () => {
        const target = this.#luck.of([MAIN, CODER, GUEST_SESSION].filter((one) => one !== key));
        if (isChild) return;
        steps.push(["sessions_history", { sessionKey: target }]);
        flow(this.#sources(target), session);
        flow(this.#sources(target), chain);
        if (this.#isOwners(target)) learn("private", `session ${target}`);
      },
    ];
    const count = 1 + this.#luck.below(ACTIONS_MAX);
    for (let at = 0; at < count && !isOver; at += 1) this.#luck.of(actions)();
    town.plan(name, steps);
    return name;
  }

  /** Plays one run that somebody outside of the gateway begins. */
  async run(town: Town): Promise<void> {
    const chain = noSources();
    const isGuest = this.#luck.chance(0.3);
    if (isGuest) {
      chain.outside.add(GUEST);
      return town.guest(`Do it. #${this.#plan(town, GUEST_SESSION, chain)}`);
    }
    if (this.#luck.chance(0.1)) {
      chain.outside.add(PEER);
      return town.peer(`Do it. #${this.#plan(town, MAIN, chain)}`);
    }
    const key = this.#luck.of([MAIN, CODER, ...this.#forks]);
    return town.tell(`Do it. #${this.#plan(town, key, chain)}`, key);
  }

  async fork({ client }: Town): Promise<void> {
    const { messages } = await client.request("chat.history", { sessionKey: MAIN });
    const last = messages.at(-1) as { readonly id?: string } | undefined;
    if (last?.id === undefined) return;
    const { key } = await client.request("sessions.fork", { sessionKey: MAIN, at: last.id });
    flow(this.#sources(MAIN), this.#sources(key));
    this.#forks.push(key);
  }

  async reset({ client }: Town): Promise<void> {
    const key = this.#luck.of([MAIN, CODER, GUEST_SESSION]);
    await client.request("sessions.reset", { key });
    this.#sessions.set(key, noSources());
  }

  /** Plays a guest's run that fails, and is retried after an owner has released its session. */
  async retry(town: Town): Promise<void> {
    const name = `failed-${this.#seed}-${this.#plans++}`;
    town.plan(name, [[FAILS, {}]]);
    await town.guest(`Do it. #${name}`);
    await town.client.request("labels.release", { sessionKey: GUEST_SESSION });
    this.#sessions.set(GUEST_SESSION, noSources());
    const chain = noSources();
    chain.outside.add(GUEST);
    this.#plan(town, GUEST_SESSION, chain, { name });
    await town.retry();
  }

  async compact(town: Town): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await town.tell("word ".repeat(400));
    await town.client.request("sessions.compact", { key: MAIN });
  }

  /** Returns the first difference between the plain model and the gateway. */
  async wrong({ house, thefts }: Town): Promise<string | undefined> {
    const stolen = thefts.find((path) => this.#forbidden.has(path));
    if (stolen !== undefined) return `${stolen} was fetched`;
    for (const [key, sources] of this.#sessions) {
      const session = await getSession(house.store.db, key);
      if (session === undefined) continue;
      const real = labelsKnownTo(house.settings, session);
      const known = new Set(real?.outside?.map(({ source }) => source));
      const lost = [...sources.outside].find((one) => !known.has(one) && !known.has("further sources"));
      if (lost !== undefined) return `${key} lacks outside ${lost}`;
      // In a private session, other private texts need no mark.
      if (sources.private.size > 0 && real?.private === undefined)
        return `${key} lacks private ${[...sources.private].join(", ")}`;
    }
    return undefined;
  }
}

/** Plays the story of a seed. Returns the violation, or undefined. */
export async function playStory(seed: number): Promise<string | undefined> {
  const luck = dice(`order ${seed}`);
  const story = new Story(seed);
  const tools = ["mcp__a__read", "mcp__b__read"];
  const options = {
    servers: SERVERS,
    labels: { sinks: { hosts: [], tools, places: [] } },
    answer: "deny" as const,
  };
  let town = await openTown(options);
  writeFileSync(join(town.folder, "main", FIRST_FILE), "a text of the owner");
  let wrong: string | undefined;
  for (let run = 0; run < RUNS_MAX && wrong === undefined; run += 1) {
    await story.run(town);
    wrong = await story.wrong(town);
    const event = luck.below(9);
    if (event === 0) await story.fork(town);
    if (event === 1) await story.reset(town);
    if (event === 2) await story.compact(town);
    if (event === 4) await story.retry(town);
    if (event === 3) {
      const { folder, house } = town;
      await house.stop();
      town = await openTown({ ...options, folder });
    }
    wrong ??= await story.wrong(town);
  }
  await cleanUp();
  return wrong;
}
