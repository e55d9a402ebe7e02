// Owns the tour of the demo: the messages to its agents, their order, and the progress. An act is over when
// the demo's agents are idle.
// TR1: messages of the first round have fixed run ids. So each is accepted only once, even if the page is
//      loaded several times or in several tabs.

import { signal } from "@preact/signals";
import { GatewayError } from "../../../src/contract/client/error.ts";
import { after } from "../clock.ts";
import { ask } from "../gateway.ts";
import { complain } from "../parts/notices.tsx";
import { go, route } from "../route.ts";

interface Prompt {
  readonly agent: string;
  readonly text: string;
}

interface Act {
  readonly title: string;
  /** The messages of the act. The caption describes what the last one causes. */
  readonly lines: readonly Prompt[];
  readonly caption: string;
}

export const ACTS: readonly Act[] = [
  {
    title: "A question",
    lines: [
      // A person must write to `research` first, so that its announcement has a chat to go to.
      { agent: "research", text: "say I am here, ask me anything" },
      { agent: "main", text: "ask research: what should we check before a release?" },
    ],
    caption:
      "main asks research and waits for the answer. Then the two take turns until one has nothing to add. " +
      "At the end research announces the result in its own channel.",
  },
  {
    title: "Three jobs",
    lines: [{ agent: "main", text: "spawn 3 jobs: wait 2 seconds, then say part {n} is done" }],
    caption:
      "main gives three jobs to sub-agents and is free at once. The jobs run in parallel. Each result " +
      "comes back once, into main's conversation and to its people.",
  },
  {
    title: "A circle",
    lines: [{ agent: "main", text: "ask research: ask ops: ask main: may we ship?" }],
    caption:
      "main asks research, research asks ops, and ops asks main, which is waiting: a deadlock. The gateway " +
      "refuses that send at once and names the circle. The other two get answers.",
  },
];

/** Interval at which the page checks whether the demo is idle. */
const QUIET_EVERY_MS = 400;

interface Tour {
  /** Index of the act that the caption describes. */
  readonly act: number;
  readonly playing: boolean;
  /** Number of acts that were played in this round, including the current one. */
  readonly played: number;
}

export const tour = signal<Tour>({ act: 0, playing: true, played: 0 });

/** True while the first round is played, in which messages have fixed run ids. */
let isFirstRound = true;
/** Incremented when an act starts. An older act that is still waiting then no longer updates the page. */
let turn = 0;

function runId(act: number, line: number): string {
  return `demo-act-${act + 1}-${line + 1}`;
}

async function wasPlayed(act: number): Promise<boolean> {
  const last = (ACTS[act]?.lines.length ?? 1) - 1;
  try {
    await ask("agent.wait", { runId: runId(act, last), timeoutMs: 0 });
    return true;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "NOT_FOUND") return false;
    throw error;
  }
}

async function isQuiet(): Promise<boolean> {
  const { lanes, deliveries } = await ask("health");
  const busy = lanes === undefined ? 0 : lanes.running + lanes.waiting + lanes.queued;
  return busy + (deliveries?.pending ?? 0) === 0;
}

async function newestChain(): Promise<string | undefined> {
  const { chains } = await ask("chains.list", { limit: 1 });
  return chains[0]?.chainId;
}

function show(chainId: string | undefined): void {
  // If the reader has left the flow view, do not bring the reader back to it.
  if (chainId !== undefined && route.value.view === "flow") go({ view: "flow", chainId }, true);
}

async function play(act: number): Promise<void> {
  const mine = ++turn;
  tour.value = { act, playing: true, played: act + 1 };
  try {
    const before = await newestChain();
    for (const [at, { agent, text }] of (ACTS[act]?.lines ?? []).entries()) {
      await ask("chat.send", {
        sessionKey: `agent:${agent}:main`,
        message: text,
        ...(isFirstRound ? { idempotencyKey: runId(act, at) } : {}),
      });
    }
    let newest = before;
    do {
      await new Promise<void>((resolve) => after(QUIET_EVERY_MS, resolve));
      const chainId = await newestChain();
      if (chainId === undefined || chainId === newest) continue;
      newest = chainId;
      show(chainId);
    } while (!(await isQuiet()));
  } catch (error) {
    if (mine === turn) complain(error);
  }
  if (mine === turn) tour.value = { ...tour.value, playing: false };
}

/** Starts the demo, or continues an earlier one at the point where it stopped. */
export async function enterTour(): Promise<void> {
  const mine = ++turn;
  try {
    let played = 0;
    while (played < ACTS.length && (await wasPlayed(played))) played++;
    if (mine !== turn) return;
    if (played === 0) return void playAct(0);
    tour.value = { act: played - 1, playing: false, played };
    if (route.value.view === "flow" && route.value.chainId === undefined) show(await newestChain());
  } catch (error) {
    if (mine !== turn) return;
    complain(error);
    tour.value = { ...tour.value, playing: false };
  }
}

export function playAct(act: number): void {
  go({ view: "flow" });
  void play(act);
}

/** Plays the demo again. The earlier rounds remain visible. */
export function playAgain(): void {
  isFirstRound = false;
  playAct(0);
}
