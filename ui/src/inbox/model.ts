// Owns the attention list on the page. It is read at the start, after each reconnect, and soon after each
// `attention` event. If the reader has switched on notifications, the browser shows a notification when there
// are new items that need the reader.

import { computed, signal } from "@preact/signals";
import type { AttentionGroupRows, AttentionItem } from "../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { batched, inTurn } from "../clock.ts";
import { ask, has, on, onSignedOut, whenConnected } from "../gateway.ts";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { tabStorage } from "../token.ts";
import { isSnoozed } from "./snooze.ts";

const READ_AFTER_MS = 300;
/** Items to read of each group: more if more need the reader. */
const ITEMS = 50;
const ITEMS_MAX = 200;
const NOTIFY_UNDER = "parley.notify";

const read = signal<{ groups?: readonly AttentionGroupRows[]; problem?: unknown }>({});
export const groups = computed(() => read.value.groups);
export const problem = computed(() => read.value.problem);
const needs = computed(() => groups.value?.find(({ group }) => group === "needs_you"));

export const needsCount = computed(() => {
  const { count = 0, items = [] } = needs.value ?? {};
  return count - items.filter(isSnoozed).length;
});

const needsBySession = computed(() =>
  Map.groupBy(needs.value?.items ?? [], ({ sessionKey = "" }) => sessionKey),
);

/** Returns the open permission requests of a session, oldest first. */
export function permissionsOf(sessionKey: string): readonly AttentionItem[] {
  return needsBySession.value.get(sessionKey)?.filter(({ kind }) => kind === "permission") ?? [];
}

/** Returns the kind of item for which an idle session needs a person, apart from a look at its failure. */
export function needOf(sessionKey: string): AttentionItem["kind"] | undefined {
  const items = needsBySession.value.get(sessionKey) ?? [];
  return items.find((one) => (one.kind === "question" || one.kind === "unanswered") && !isSnoozed(one))?.kind;
}

export function awaitedPermission([item]: readonly AttentionItem[]): string {
  return item?.actions.includes("deny") === true ? "waiting for your permission" : "waiting for permission";
}

/** Returns the words between an agent and its wish. `kind`: that of the permission request. */
export function wantsTo(kind: string | undefined): string {
  if (kind === "elicitation") return "passes on a question:";
  return kind === "exec" ? "wants to run:" : "asks for permission:";
}

/** Names an item after its session, or else after the person or device that asks. */
export function itemName({ sessionKey, label, title }: AttentionItem): string {
  return sessionKey === undefined ? (title ?? "") : label || nameOf(sessionKey);
}

type Notify = "impossible" | "off" | "on" | "blocked";

function notifyState(): Notify {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "blocked";
  const isWanted = Notification.permission === "granted" && tabStorage()?.getItem(NOTIFY_UNDER) === "yes";
  return isWanted ? "on" : "off";
}

/** Whether the browser shows notifications of new items, or why it cannot. */
export const notify = signal<Notify>(notifyState());

/** Leaves notifications to another part of the page, which shows them also while the page is closed. */
export function leaveNotify(isLeft: boolean): void {
  notify.value = isLeft ? "impossible" : notifyState();
}

/** Switches notifications on or off. The first time, the browser asks the reader for permission. */
export async function turnNotify(): Promise<void> {
  const wants = notify.value === "off";
  if (wants) await Notification.requestPermission();
  tabStorage()?.setItem(NOTIFY_UNDER, wants ? "yes" : "no");
  notify.value = notifyState();
  if (notify.value === "on") say("Notifications are on for items that need you.");
  if (notify.value === "blocked") complain("The browser blocks notifications of this page.");
}

/** Shows a notification of the items that need the reader and that were not in the list before. */
function notifyOfNew(old: AttentionGroupRows | undefined): void {
  const current = needs.value;
  if (notify.value !== "on" || old === undefined || current === undefined) return;
  // If the earlier list was cut, an older item is not new: it was only beyond the cut.
  const known = new Set(old.items.map(({ id }) => id));
  const isCut = old.count > old.items.length;
  const others = old.items.filter(({ kind }) => kind !== "permission");
  const oldest = isCut ? Math.min(...others.map(({ since }) => since)) : Number.NEGATIVE_INFINITY;
  const fresh = current.items.filter(
    ({ id, kind, since }) => !known.has(id) && (kind === "permission" || since > oldest),
  );
  const [first] = fresh;
  if (first === undefined) return;
  const title = fresh.length === 1 ? itemName(first) : `${fresh.length} items need you`;
  try {
    // Use the item's id as the tag. Notifications of two tabs about one item then have the same tag, so the
    // browser shows only one.
    new Notification(safeLine(title), { body: safeLine(first.summary), tag: first.id });
  } catch {
    // On Android, only a service worker may show notifications.
    notify.value = "impossible";
    complain("This browser can't show notifications of a page.");
  }
}

/** Shows the list, which was read before the connection was open. */
export function showFirstGroups(groups: readonly AttentionGroupRows[]): void {
  read.value = { groups };
}

/** `expected`: number of items that need the reader. */
async function readGroups(expected: number): Promise<readonly AttentionGroupRows[]> {
  const limit = Math.min(ITEMS_MAX, Math.max(ITEMS, expected));
  const { groups } = await ask("attention.list", { limit });
  const { count = 0 } = groups.find(({ group }) => group === "needs_you") ?? {};
  return count > limit && limit < ITEMS_MAX ? readGroups(count) : groups;
}

const readInTurn = inTurn(async () => {
  try {
    const groups = await readGroups(needs.value?.count ?? 0);
    const before = needs.value;
    read.value = { groups };
    notifyOfNew(before);
  } catch (problem) {
    read.value = { ...read.value, problem };
  }
});

export async function readAgain(): Promise<void> {
  if (has("attention.list")) await readInTurn();
}

/** Keeps the list up to date while the reader is signed in. Returns a function that ends this. */
export function followAttention(): () => void {
  const soon = batched(READ_AFTER_MS, () => void readAgain());
  const stops = [whenConnected(() => void readAgain()), on("attention", soon)];
  return () => {
    for (const stop of stops) stop();
  };
}

onSignedOut(() => {
  read.value = {};
});
