// The kinds of items between which the reader can choose. Pure.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";

export const FILTERS = {
  "": "Everything",
  permissions: "Permissions",
  questions: "Questions",
  failures: "Failures",
  deliveries: "Deliveries",
  others: "Others",
} as const;
export type Filter = keyof typeof FILTERS;

const FILTER_OF: Readonly<Partial<Record<AttentionItem["kind"], Filter>>> = {
  permission: "permissions",
  question: "questions",
  run: "failures",
  budget: "failures",
  delivery: "deliveries",
};

export const isWanted = (item: AttentionItem, filter: Filter): boolean =>
  filter === "" || (FILTER_OF[item.kind] ?? "others") === filter;
