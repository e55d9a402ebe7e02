// Owns the attention list on the page. It is read at the start, after each reconnect, and soon after each
// event about it. If the reader has switched on notifications, the browser shows one for each new item in the
// first group.

import { computed, effect, signal } from "@preact/signals";
import type { AttentionGroupRows, AttentionItem } from "../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { batched } from "../clock.ts";
import { ask, has, on, stage, whenConnected } from "../gateway.ts";
import { sessionName } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { tabStorage } from "../token.ts";

const READ_AFTER_MS = 300;
const NOTIFY_UNDER = "parley.notify";

interface Read {
  readonly groups?: readonly AttentionGroupRows[];
  readonly problem?: unknown;
}

const read = signal<Read>({});
export const groups = computed(() => read.value.groups);
export const problem = computed(() => read.value.problem);

function needs({ groups = [] }: Read): AttentionGroupRows | undefined {
  return groups.find(({ group }) => group === "needs_you");
}

/** Number of items that need the reader's attention. */
export const needsCount = computed(() => needs(read.value)?.count ?? 0);

/** Returns the name of an item: its session, or else the person or device that made the request. */
export function itemName({ sessionKey, label, title }: AttentionItem): string {
  return sessionKey === undefined ? (title ?? "") : sessionName({ key: sessionKey, label });
}

type Notify = "impossible" | "off" | "on" | "blocked";

function notifyState(): Notify {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "blocked";
  const isWanted = Notification.permission === "granted" && tabStorage()?.getItem(NOTIFY_UNDER) === "yes";
  return isWanted ? "on" : "off";
}

/** Whether the browser shows notifications of new items. */
export const notify = signal<Notify>(notifyState());

/** Switches notifications on or off. The first time, the browser asks the reader for permission. */
export async function turnNotify(): Promise<void> {
  if (notify.value === "blocked") return complain("The browser blocks notifications of this page.");
  const wants = notify.value === "off";
  if (wants) await Notification.requestPermission();
  tabStorage()?.setItem(NOTIFY_UNDER, wants ? "yes" : "no");
  notify.value = notifyState();
  if (notify.value === "on") say("New items that need you cause a notification.");
}

function tellOf(before: Read, now: Read): void {
  if (notify.value !== "on" || before.groups === undefined) return;
  const known = new Set(needs(before)?.items.map(({ id }) => id));
  const fresh = (needs(now)?.items ?? []).filter(({ id }) => !known.has(id));
  const [first] = fresh;
  if (first === undefined) return;
  const title = fresh.length === 1 ? itemName(first) : `${fresh.length} items need you`;
  new Notification(safeLine(title), { body: safeLine(first.summary), tag: "parley" });
}

let latest = 0;

/** Reads the attention list again. */
export async function readAgain(): Promise<void> {
  if (!has("attention.list")) return;
  const mine = ++latest;
  try {
    const { groups } = await ask("attention.list", {});
    if (mine !== latest) return;
    tellOf(read.value, { groups });
    read.value = { groups };
  } catch (problem) {
    if (mine === latest) read.value = { ...read.value, problem };
  }
}

/** Keeps the list up to date while the reader is signed in. Returns a function that ends this. */
export function followAttention(): () => void {
  const soon = batched(READ_AFTER_MS, () => void readAgain());
  const stops = [whenConnected(() => void readAgain()), on("attention", soon)];
  return () => {
    for (const stop of stops) stop();
  };
}

effect(() => {
  if (stage.value.kind === "signed-out") read.value = {};
});
