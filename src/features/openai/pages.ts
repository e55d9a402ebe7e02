// Reads which part of a list of items a request wants, and builds the page.

import { ok, type Result } from "../../core/shapes/errors.ts";
import { wrong } from "./format.ts";

const ITEMS_MAX = 100;

export interface ListedItem {
  readonly id: string;
  readonly [field: string]: unknown;
}

interface WantedPage {
  readonly limit: number;
  readonly order: "asc" | "desc";
  /** Id of the last item of the page before. */
  readonly after?: string | undefined;
}

/** Reads the query of a request. Default: the newest 20 items. */
export function readPage(query: Readonly<Record<string, string>>): Result<WantedPage> {
  const { limit: given = "20", order = "desc", after } = query;
  const limit = Number(given);
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= ITEMS_MAX))
    return wrong("limit", `must be 1 to ${ITEMS_MAX}`);
  return order === "asc" || order === "desc"
    ? ok({ limit, order, after })
    : wrong("order", "must be asc or desc");
}

export function pageOf(items: readonly ListedItem[], has_more: boolean): object {
  return {
    ...{ object: "list", data: items, has_more },
    ...{ first_id: items[0]?.id ?? null, last_id: items.at(-1)?.id ?? null },
  };
}

/** Builds the wanted page of these items, which are in the wanted order. No more are read than it needs. */
export async function takePage(
  items: AsyncIterable<ListedItem> | Iterable<ListedItem>,
  { limit, after }: WantedPage,
  noSuchItem: string,
): Promise<Result<object>> {
  const taken: ListedItem[] = [];
  let isAfter = after === undefined;
  for await (const item of items) {
    if (isAfter) taken.push(item);
    if (taken.length > limit) break;
    isAfter ||= item.id === after;
  }
  return isAfter ? ok(pageOf(taken.slice(0, limit), taken.length > limit)) : wrong("after", noSuchItem);
}
