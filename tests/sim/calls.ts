// Chooses the tool calls of a scripted model: allowed calls, forbidden calls, and invalid calls.

import type { FlowStep, Run } from "../../src/core/shapes/run.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import type { Dice } from "../kit/dice.ts";
import { type SessionFacts, sightOf } from "./checks/rights.ts";
import type { Story } from "./story.ts";
import { textAround } from "./words.ts";

export interface WantedCall {
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

interface Caller {
  readonly story: Story;
  readonly luck: Dice;
  readonly settings: Settings;
  readonly run: Run;
  /** The tools in the model's request. */
  readonly offered: readonly string[];
}

/**
 * Returns the key of a session for a tool call: mostly a visible one, often a hidden one, sometimes the
 * caller's own.
 */
function someSession({ story, luck, settings, run }: Caller): SessionFacts | undefined {
  if (luck.chance(0.07)) return story.known.get(run.sessionKey);
  const seen = [...sightOf(run.sessionKey, story.sessions, settings)].filter((key) => key !== run.sessionKey);
  const keys = seen.length === 0 || luck.chance(0.15) ? [...story.known.keys()] : seen;
  return keys.length === 0 ? undefined : story.known.get(luck.of(keys));
}

/** Returns arguments that select a session, by key, id or label. */
function naming(caller: Caller): Record<string, unknown> {
  const { luck } = caller;
  const session = someSession(caller);
  if (session === undefined || luck.chance(0.03)) {
    return { sessionKey: luck.of(["agent:main:typo", "unknown", "global", "agent:nobody:main", "", "main"]) };
  }
  const { key, sessionId, label, agentId } = session;
  if (luck.chance(0.08)) return { sessionKey: sessionId };
  if (label !== undefined && luck.chance(0.4)) return { label, agentId };
  if (luck.chance(0.04)) return { sessionKey: ` ${key.replace("agent:", "AGENT:")} ` };
  return { sessionKey: key };
}

function send(caller: Caller): WantedCall {
  const { story, luck } = caller;
  const message = textAround(story, luck, story.word("q"));
  const seconds = luck.of(
    story.plan.features.tangle ? [2, 30, 30] : [0, 0, 0.003, 0.02, 0.05, 0.2, 2, 30, 30],
  );
  const timeout = luck.chance(0.1) ? {} : { timeoutSeconds: seconds };
  return { name: "sessions_send", arguments: { ...naming(caller), message, ...timeout } };
}

/** Returns random values for the optional arguments of a spawn. */
function spawnWishes({ story, luck }: Caller): Record<string, unknown> {
  const wishes: Record<string, unknown> = {};
  if (luck.chance(0.3)) wishes.agentId = luck.of(["main", "research", "writer", "nobody", "Research"]);
  if (luck.chance(0.3)) wishes.cleanup = luck.of(["keep", "delete", "delete"]);
  if (luck.chance(0.25)) wishes.runTimeoutSeconds = luck.of([0.001, 0.01, 0.03, 0.5]);
  if (luck.chance(0.08)) wishes.timeoutSeconds = 1;
  if (luck.chance(0.3)) wishes.label = story.word("label");
  if (luck.chance(0.2)) wishes.model = luck.of(["fake/wide", "fake/narrow", "fake/none"]);
  if (luck.chance(0.06)) wishes.thinking = luck.of(["low", "wild"]);
  if (luck.chance(0.05)) wishes.thread = true;
  if (luck.chance(0.05)) wishes.mode = "session";
  if (luck.chance(0.1)) wishes.sandbox = luck.of(["require", "inherit", "maybe"]);
  return wishes;
}

function attached({ story, luck }: Caller): Record<string, unknown> {
  if (!story.plan.features.files || !luck.chance(0.6)) return {};
  const content = story.word("content");
  story.contents.push(content);
  const name = luck.of(["a.txt", "b.txt", "../c.txt"]);
  const second = luck.chance(0.3) ? [{ name: "A.TXT", content: "x" }] : [];
  return { attachments: [{ name, content }, ...second] };
}

function spawn(caller: Caller): WantedCall {
  const { story, luck } = caller;
  const task = textAround(story, luck, story.word("task"));
  return { name: "sessions_spawn", arguments: { task, ...spawnWishes(caller), ...attached(caller) } };
}

function look(caller: Caller): WantedCall {
  const { story, luck } = caller;
  const name = luck.of([
    ...["sessions_list", "sessions_list", "sessions_history", "sessions_history", "sessions_search"],
    ...["session_status", "session_status", "agents_list", "subagents"],
  ]);
  switch (name) {
    case "sessions_list":
      return {
        name,
        arguments: luck.chance(0.5) ? { messageLimit: 3 } : luck.chance(0.3) ? { search: "agent" } : {},
      };
    case "sessions_history":
      return { name, arguments: { ...naming(caller), includeTools: luck.chance(0.5), limit: 20 } };
    case "sessions_search": {
      const secret = story.secrets.length > 0 && luck.chance(0.4) ? luck.of(story.secrets) : undefined;
      return { name, arguments: { query: secret ?? luck.of(["key", "paragraph", "Status", "from"]) } };
    }
    case "session_status": {
      const runs = [...story.promised];
      if (runs.length > 0 && luck.chance(0.4)) return { name, arguments: { runId: luck.of(runs) } };
      return { name, arguments: luck.chance(0.3) ? {} : naming(caller) };
    }
    default:
      return { name, arguments: {} };
  }
}

function cancel(caller: Caller): WantedCall {
  const { luck, run, story } = caller;
  const own = [...story.known.values()]
    .filter((one) => one.spawnedBy === run.sessionKey)
    .map((one) => one.key);
  const sessionKey = own.length > 0 && luck.chance(0.7) ? luck.of(own) : luck.of(["all", "agent:main:main"]);
  // Recorded before the call, because a crash may prevent the result.
  story.stopped.add(sessionKey);
  return { name: "subagents", arguments: { action: "cancel", sessionKey } };
}

/** Returns a sandboxed command, which must be executed at most once. */
function command({ story, luck }: Caller): WantedCall {
  const word = story.word("cmd");
  story.commands.set(word, 0);
  if (luck.chance(0.3)) {
    return { name: "edit", arguments: { path: "notes", edits: [{ oldText: "end", newText: word }] } };
  }
  return { name: "exec", arguments: { command: word } };
}

function nonsense({ luck }: Caller): WantedCall {
  return luck.of([
    { name: "sessions_send", arguments: { sesionKey: "main", message: "typo" } },
    {
      name: "sessions_send",
      arguments: { sessionKey: "main", label: "both", message: "x", timeoutSeconds: "5" },
    },
    { name: "sessions_spawn", arguments: { task: "  " } },
    { name: "sessions_history", arguments: {} },
    { name: "session_sends", arguments: {} },
    { name: "exec", arguments: { command: " " } },
    { name: "sessions_list", arguments: { kinds: ["all"] } },
    { name: "sessions_send", arguments: { _unreadable_arguments: "{broken" } },
  ]);
}

function oneCall(caller: Caller): WantedCall {
  const { luck, story, offered } = caller;
  const { sends, spawns, looks } = story.plan.features;
  const roll = luck.below(1000) / 1000;
  const all = sends + spawns + looks + 0.12;
  const at = roll * all;
  if (at < sends) return send(caller);
  if (at < sends + spawns) return luck.chance(0.12) ? cancel(caller) : spawn(caller);
  if (at < sends + spawns + looks) return look(caller);
  if (offered.includes("exec") && luck.chance(0.6)) return command(caller);
  return luck.chance(0.5) ? nonsense(caller) : look(caller);
}

/** Probability of tool calls in a turn, by the step of the flow. */
const EAGER: Readonly<Record<FlowStep, number>> = { round1: 0.7, task: 0.8, reply: 0.35, announce: 0.2 };

/** Returns the tool calls of one model message. If the list is empty, the model answers with text. */
export function wantedCalls(caller: Caller, steps: number): WantedCall[] {
  const { luck, story, run } = caller;
  const { sends, spawns, looks } = story.plan.features;
  const eager = run.flow === undefined ? 1 : EAGER[run.flow.step];
  const share = Math.min(0.85, sends + spawns + looks) * eager * 0.55 ** steps * (story.settling ? 0.2 : 1);
  if (!luck.chance(share)) return [];
  const count = luck.of([1, 1, 1, 2, 3]);
  return Array.from({ length: count }, () => oneCall(caller));
}
