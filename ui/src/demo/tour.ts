// Owns the tour of the demo: what is said to its agents, in which order, and how far it is.
// TR1: what is said has a fixed run id in the first round: it is said once, however often the page is loaded
//      and in however many tabs.
// TR2: an act is over when nothing of the demo is under way any more.

import { signal } from "@preact/signals";
import { GatewayError } from "../../../src/gateway/client/web.ts";
import { after } from "../clock.ts";
import { ask } from "../gateway.ts";
import { complain } from "../parts/notices.tsx";
import { go, route } from "../route.ts";

interface Line {
  readonly agent: string;
  readonly text: string;
}

interface Act {
  readonly title: string;
  /** The last one is the one that is told about. */
  readonly lines: readonly Line[];
  /** What is to be seen. */
  readonly caption: string;
}

export const ACTS: readonly Act[] = [
  {
    title: "A question",
    lines: [
      // Somebody talks to research first: its announcement has somewhere to go then.
      { agent: "research", text: "say I am here, ask me anything" },
      { agent: "main", text: "ask research: what should we check before a release?" },
    ],
    caption:
      "main asks research and waits for the answer. Then the two go back and forth, one turn each, until " +
      "one has nothing to add; and research announces to its own people how it ended.",
  },
  {
    title: "Three jobs",
    lines: [{ agent: "main", text: "spawn 3 jobs: wait 2 seconds, then say part {n} is done" }],
    caption:
      "main hands out three jobs to sub-agents and is free at once. They work side by side, and each " +
      "result comes back once: into main's conversation, and to its people.",
  },
  {
    title: "A circle",
    lines: [{ agent: "main", text: "ask research: ask ops: ask main: may we ship?" }],
    caption:
      "main asks research, research asks ops, and ops would ask main, which is waiting: everybody " +
      "would wait for everybody. That send is refused at once, naming the circle; the others get answers.",
  },
];

/** How often it is asked whether the demo is quiet. */
const QUIET_EVERY_MS = 400;

interface Tour {
  /** The act that is told about. */
  readonly act: number;
  readonly playing: boolean;
  /** How many acts of this round were played, this one included. */
  readonly played: number;
}

export const tour = signal<Tour>({ act: 0, playing: false, played: 0 });

/** What is said has fixed run ids in the first round only. */
let isFirstRound = true;
/** Rises with each act that is begun: an older one tells nothing more. */
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

/** The chain that moved last. */
async function newestChain(): Promise<string | undefined> {
  const { chains } = await ask("chains.list", { limit: 1 });
  return chains[0]?.chainId;
}

function show(chainId: string | undefined): void {
  // Who went elsewhere to look is not fetched back.
  if (chainId !== undefined && route.value.view === "flow") go({ view: "flow", chainId }, true);
}

/** Waits until the act is over; its chain is shown as soon as there is one. */
async function watch(before: string | undefined): Promise<void> {
  let shown = before;
  do {
    await new Promise<void>((resolve) => after(QUIET_EVERY_MS, resolve));
    const chainId = await newestChain();
    if (chainId === undefined || chainId === shown) continue;
    shown = chainId;
    show(chainId);
  } while (!(await isQuiet()));
}

/** Plays an act, and shows it in the flow view. */
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
    await watch(before);
  } catch (error) {
    if (mine === turn) complain(error);
  }
  if (mine === turn) tour.value = { ...tour.value, playing: false };
}

/** Goes on where the demo is, or begins it. */
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
    if (mine === turn) complain(error);
  }
}

export function playAct(act: number): void {
  go({ view: "flow" });
  void play(act);
}

/** From the start, beside what was said before. */
export function playAgain(): void {
  isFirstRound = false;
  playAct(0);
}
