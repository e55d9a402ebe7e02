// Derives the plan of a story from its seed: its faults, and the settings of each process. A story uses only
// a few of the features, because each would be rare in a story with all of them.

import type { Settings, TokenSettings } from "../../src/core/shapes/settings/settings.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import type { DeathPlan } from "./world/faults.ts";

export const AGENTS = ["main", "research", "writer"] as const;
export const OWNER_TOKEN = "owner-token-of-the-story";

/** The features of a story. */
export interface Features {
  /**
   * How processes end. `operations`: they crash at an operation of the store; `moments`: they crash at a
   * point in time; `stops`: only planned stops.
   */
  readonly ends: "operations" | "moments" | "stops";
  readonly slowStore: boolean;
  readonly fullDisk: boolean;
  /** True if answers to commits are lost: a commit succeeds, but the process does not know it. */
  readonly lostAnswers: boolean;
  /** True if transactions wait briefly for others, to share a commit. */
  readonly groups: boolean;
  /** True if ids of messages and runs increase with time, as in a real process. */
  readonly orderedIds: boolean;
  readonly lateTimers: boolean;
  readonly pauses: boolean;
  readonly clients: boolean;
  /** True if JSONL copies and attachments are on a real disk. */
  readonly files: boolean;
  readonly aborts: boolean;
  readonly resets: boolean;
  readonly secrets: boolean;
  /** True if settings change between two processes. */
  readonly newSettings: boolean;
  /** True if all sessions send to each other and wait for the answers. */
  readonly tangle: boolean;
  /** Share of turns in which a model sends. The following fields are the shares of other tools. */
  readonly sends: number;
  readonly spawns: number;
  readonly looks: number;
  /** Share of model calls that fail. */
  readonly failures: number;
  /** Share of delivery attempts that a channel refuses. */
  readonly channelTrouble: number;
}

/** The plan of one process from its start to its end. */
export interface LifePlan {
  readonly settings: Settings;
  readonly dieAt?: DeathPlan;
  readonly dieAfterMs?: number;
  readonly stopAfterMs: number;
  /** Time at the end of the process without faults and actions, in which it can recover. */
  readonly calmMs: number;
  readonly graceMs: number;
  /** Time without a process after its end. */
  readonly downMs: number;
  /** Number of random actions of people and client programs. */
  readonly deeds: number;
}

export interface StoryPlan {
  readonly seed: number;
  readonly features: Features;
  readonly lives: readonly LifePlan[];
  /** Settings of the last process, which finishes all work. */
  readonly lastSettings: Settings;
  /** Keys of the sessions besides the main sessions. */
  readonly sessions: readonly string[];
}

const EXTRA_SESSIONS = [
  "agent:main:chat:one",
  "agent:research:chat:two",
  "agent:research:plain:group:g1",
  "agent:main:sure:channel:c1:thread:t1",
  "cron:nightly",
  "agent:writer:mcp:outside",
];

/**
 * Chooses features that were added later. They use separate random numbers, so stories without them stay
 * unchanged.
 */
function laterFaults(roll: Dice): Pick<Features, "lostAnswers" | "groups" | "orderedIds"> {
  const share = roll.chance(0.2) ? 0.6 : 0;
  return {
    lostAnswers: roll.chance(share),
    groups: roll.chance(share),
    orderedIds: roll.chance(share * 1.6),
  };
}

function featuresOf(roll: Dice, later: Dice): Features {
  const about = roll.of(["talk", "talk", "tangle", "jobs", "jobs", "both", "both", "looks"] as const);
  const talks = about === "talk" || about === "both";
  const files = roll.chance(0.08);
  return {
    ends: roll.of(["operations", "operations", "moments", "stops"] as const),
    slowStore: roll.chance(0.25),
    fullDisk: roll.chance(0.15),
    ...laterFaults(later),
    lateTimers: roll.chance(0.3),
    pauses: roll.chance(0.1),
    clients: roll.chance(0.45),
    files,
    aborts: roll.chance(0.45),
    resets: roll.chance(0.3),
    secrets: roll.chance(0.35),
    newSettings: roll.chance(0.5),
    tangle: about === "tangle",
    sends: about === "tangle" ? 1.5 : talks ? 0.55 : 0.1,
    spawns: files ? 0.6 : about === "jobs" || about === "both" ? 0.4 : 0.05,
    looks: about === "looks" ? 0.6 : 0.12,
    failures: roll.of([0, 0.05, 0.15]),
    channelTrouble: roll.of([0, 0.2, 0.5]),
  };
}

/** The tokens of clients. Only the owner's token covers all sessions. */
const TOKENS: readonly TokenSettings[] = [
  { token: "main-only", role: "operator", scopes: ["operator.admin"], sessions: ["agent:main:*"] },
  { token: "research-reader", role: "operator", scopes: ["operator.read"], sessions: ["agent:research:*"] },
  {
    token: "subagents-only",
    role: "operator",
    scopes: ["operator.write"],
    sessions: ["*:subagent:*", "cron:*"],
  },
  { token: "some-node", role: "node", scopes: [] },
];

const MODEL = { maxOutputTokens: 500, reasoning: false, images: false };

/** One model has a large context window, and the other one a window that is soon full. */
const PROVIDER = {
  id: "fake",
  api: "openai-completions",
  baseUrl: "http://127.0.0.1:1",
  headers: {},
  connectTimeoutSeconds: 10,
  idleTimeoutSeconds: 90,
  maxRetries: 3,
  models: [
    {
      ...MODEL,
      id: "wide",
      contextWindow: 200_000,
      maxOutputTokens: 4_000,
      cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
    },
    {
      ...MODEL,
      id: "narrow",
      contextWindow: 4_500,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    },
  ],
} as const;

/** Tools of sub-agents in stories that replace the default, which denies them the session tools. */
const CHILD_TOOLS = ["sessions_*", "agents_list", "session_status", "subagents", "exec", "edit"];

function agentOf(id: string, roll: Dice, workspace: string, boxed: boolean) {
  const base = agentSettings(id);
  const deny = roll.chance(0.15) ? [roll.of(["sessions_spawn", "sessions_list", "session_*", "exec"])] : [];
  const sandbox = boxed ? roll.of(["off", "non-main", "all"] as const) : "off";
  const seen = roll.of(["spawned", "all"] as const);
  return agentSettings(id, {
    model: roll.chance(0.15) ? "fake/narrow" : "fake/wide",
    workspace,
    tools: { allow: [], deny },
    subagents: { allowAgents: roll.of([["*"], ["*"], ["research"], []]) },
    sandbox: { ...base.sandbox, mode: sandbox, sessionToolsVisibility: seen },
  });
}

function toolsOf(roll: Dice, base: Settings["tools"], open: boolean): Settings["tools"] {
  const { attachments } = base.sessionsSpawn;
  const visibility = roll.of(["all", "all", "all", "agent", "agent", "tree", "tree", "self"] as const);
  const agentToAgent = {
    enabled: roll.chance(0.8),
    allow: roll.of([[], [], ["main", "research"], ["r*", "w*"]]),
  };
  return {
    ...base,
    visibility: open ? "all" : visibility,
    agentToAgent: open ? { enabled: true, allow: [] } : agentToAgent,
    subagents: {
      allow: roll.chance(0.5) ? CHILD_TOOLS : [],
      deny: roll.chance(0.1) ? ["sessions_send"] : [],
    },
    sandbox: { allow: [], deny: roll.chance(0.2) ? ["sessions_search"] : [] },
    filter: { allow: [], deny: roll.chance(0.1) ? ["sessions_status", "agents_list"] : [] },
    sessionsSpawn: { attachments: { ...attachments, retainOnSessionKeep: roll.chance(0.3) } },
    history: { maxTextChars: 400, maxBytes: 20_000 },
  };
}

function sessionOf(roll: Dice, base: Settings["session"], open: boolean): Settings["session"] {
  const tokens = roll.chance(0.25) ? { maxChainTokens: 8_000 + roll.below(12_000) } : {};
  const cost = roll.chance(0.1) ? { maxChainCost: roll.below(20_000) / 1_000_000 } : {};
  const denied = [{ match: { channel: "plain" }, action: "deny" as const }];
  return {
    ...base,
    queueMax: roll.of([2, 4, 200, 200, 200]),
    sendPolicy: { rules: roll.chance(0.12) ? denied : [], default: "allow" },
    agentToAgent: {
      maxPingPongTurns: roll.of([0, 1, 2, 3, 5]),
      maxHops: (open ? 4 : 1) + roll.below(5),
      maxChainRuns: open ? 60 : roll.of([4, 8, 14, 30, 60]),
      ...tokens,
      ...cost,
    },
  };
}

function settingsOf(roll: Dice, features: Features, dir: string, workspace: string): Settings {
  const base = settingsWith();
  const open = features.tangle;
  const boxed = roll.chance(0.45);
  const left = AGENTS.filter((id) => id === "main" || !roll.chance(0.06));
  return {
    ...base,
    gateway: { ...base.gateway, token: OWNER_TOKEN, tokens: TOKENS },
    store: { dir, durability: "normal" },
    providers: [PROVIDER],
    agents: left.map((id) => agentOf(id, roll, workspace, boxed)),
    maxConcurrent: roll.of(open ? [3, 4] : [1, 1, 2, 3, 4]),
    subagents: {
      maxConcurrent: roll.of([1, 2, 3]),
      maxChildren: roll.of([1, 2, 4]),
      maxSpawnDepth: 1 + roll.below(3),
      runTimeoutSeconds: roll.of([0, 0, 0.05, 1]),
      // The shortest time (0.002 min) is over while the process still runs.
      archiveAfterMinutes: roll.of([0, 0.002, 1, 60]),
      announce: roll.of(["post", "wake"] as const),
      ...(roll.chance(0.2) ? { model: "fake/narrow" } : {}),
    },
    session: sessionOf(roll, base.session, open),
    tools: toolsOf(roll, base.tools, open),
    // tests/labels/simulation.deep.test.ts has stories of its own.
    labels: { ...base.labels, mode: "off" },
  };
}

/** Crashes are distributed over these tables, so that rare writes get as many crashes as frequent ones. */
const TABLES = [
  "deadlines",
  "deadlines",
  "deliveries",
  "deliveries",
  "waits",
  "flows",
  "idempotency",
  "sessions",
];

/** Returns the point of a crash: any operation, any commit, or a commit that writes into one table. */
function deathPlan(roll: Dice): DeathPlan {
  const place = roll.of(["commit", "committed", "committed"] as const);
  switch (roll.below(3)) {
    case 0:
      return { place: "operation", count: 10 + roll.below(1_500) };
    case 1:
      return { place, count: 2 + roll.below(1 + roll.below(130)) };
    default:
      return { place, table: roll.of(TABLES), count: 1 + roll.below(1 + roll.below(12)) };
  }
}

/** This time is longer than a process needs to find out whether a commit without an answer succeeded. */
const CALM_MS = 6_000;

function lifeOf(roll: Dice, features: Features, settings: Settings): LifePlan {
  const stopAfterMs = 40 + roll.below(400);
  const dies = roll.chance(0.8);
  return {
    settings,
    stopAfterMs,
    calmMs: features.lostAnswers ? CALM_MS : 0,
    graceMs: roll.of([0, 20, 200]),
    downMs: roll.of([1, 5, 50, 3_000, 90_000, 3_700_000]),
    deeds: 4 + roll.below(9),
    ...(features.ends === "operations" && dies ? { dieAt: deathPlan(roll) } : {}),
    ...(features.ends === "moments" && dies ? { dieAfterMs: roll.below(stopAfterMs) } : {}),
  };
}

/** Returns the plan of a seed. `dir`: the store's folder; `workspace`: the folder that all agents share. */
export function planOf(seed: number, dir: string, workspace: string): StoryPlan {
  const roll = dice(`plan ${seed}`);
  const features = featuresOf(roll, dice(`faults ${seed}`));
  const first = settingsOf(roll, features, dir, workspace);
  const next = (): Settings => (features.newSettings ? settingsOf(roll, features, dir, workspace) : first);
  const lives = [lifeOf(roll, features, first)];
  for (let more = roll.below(3); more > 0; more -= 1) lives.push(lifeOf(roll, features, next()));
  return {
    seed,
    features,
    lives,
    lastSettings: next(),
    sessions: EXTRA_SESSIONS.filter(() => roll.chance(0.45)),
  };
}
