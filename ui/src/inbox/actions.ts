// Executes the actions for items of the inbox. Each action calls one method of the gateway.

import { signal } from "@preact/signals";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { FEATURE_TABS } from "../features.ts";
import { ask, wordsOf } from "../gateway.ts";
import { complain, say } from "../parts/notices.tsx";
import type { Deed } from "./marks.ts";
import { itemName, readAgain } from "./model.ts";

function decide({ kind, ref }: AttentionItem, approves: boolean): Promise<unknown> {
  if (kind === "permission" || kind === "instructions")
    return ask("permissions.answer", { id: ref, decision: approves ? "allow" : "deny" });
  const own = FEATURE_TABS.find(({ decide: theirs }) => theirs?.[kind] !== undefined)?.decide?.[kind];
  if (own !== undefined) return own(ref, approves);
  return ask(approves ? "channels.pair.approve" : "channels.pair.reject", { code: ref });
}

function take(item: AttentionItem, deed: Deed): Promise<unknown> {
  const { kind, ref, sessionKey = "" } = item;
  if (deed === "approve" || deed === "deny") return decide(item, deed === "approve");
  if (deed === "stop") return ask("chat.abort", { sessionKey, runId: ref });
  if (kind === "delivery") return ask(`deliveries.${deed}`, { id: ref });
  return ask(`runs.${deed}`, { runId: ref });
}

/** Notices after the actions. A retry has none: its row shows it. */
const DONE: Readonly<Partial<Record<Deed, string>>> = {
  approve: "Allowed",
  deny: "Denied",
  dismiss: "Dismissed",
  stop: "Stopped",
};

/** The action that is in progress for each item, by the item's id. */
export const busy = signal<ReadonlyMap<string, Deed>>(new Map());

function nameIn(item: AttentionItem): string {
  const hasTitle = item.kind === "permission" || item.kind === "instructions";
  return hasTitle ? `${item.title} in ${itemName(item)}` : itemName(item);
}

/** Acts on items one after the other, and reads the list again, also after an error. */
export async function act(items: readonly AttentionItem[], deed: Deed): Promise<void> {
  const free = items.filter((item) => !busy.value.has(item.id) && item.actions.includes(deed));
  busy.value = new Map([...busy.value, ...free.map(({ id }) => [id, deed] as const)]);
  const problems: unknown[] = [];
  const taken: AttentionItem[] = [];
  for (const item of free)
    await take(item, deed).then(
      () => taken.push(item),
      (problem: unknown) => problems.push(problem),
    );
  const done = DONE[deed];
  const [first] = taken;
  if (first !== undefined && done !== undefined)
    say(`${done}: ${taken.length === 1 ? nameIn(first) : taken.length}`);
  if (problems.length > 0) {
    const others = problems.length - 1;
    complain(others === 0 ? problems[0] : `${wordsOf(problems[0])} And ${others} more failed.`);
  }
  await readAgain();
  busy.value = new Map([...busy.value].filter(([id]) => free.every((item) => item.id !== id)));
}

const CHANGE_DOUBTS: Readonly<Partial<Record<Deed, string>>> = {
  approve: "Later runs follow the new text, as if you had written it.",
  deny: "The confirmed text replaces the new one. A new file is deleted.",
};

/** Returns the question to confirm before an action for one of these items that cannot be undone. */
export const doubtOfAll = (items: readonly AttentionItem[], deed: Deed): string | undefined =>
  items.map((item) => doubtOf(item, deed)).find((words) => words !== undefined);

/** Returns the question to confirm before an action that cannot be undone, or undefined if none is needed. */
export function doubtOf(
  { kind, code }: { kind: AttentionItem["kind"]; code?: string | undefined },
  deed: Deed,
): string | undefined {
  if (kind === "instructions") return CHANGE_DOUBTS[deed];
  if (kind === "pairing" && deed === "deny") return "This person is blocked until you remove the decision.";
  if (kind !== "delivery") return undefined;
  if (deed === "dismiss") return "A dismissed delivery can't be retried.";
  return code === "ambiguous" ? "The text may have arrived. A retry may send it a second time." : undefined;
}
