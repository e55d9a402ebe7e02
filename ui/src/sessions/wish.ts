// Owns the reader's choice for the session list (search, filters, layout), and its form in the address. An
// unknown value in an address is ignored.

import { computed, signal } from "@preact/signals";
import type { ParamsOf } from "../../../src/contract/client/web.ts";
import { SESSION_KINDS } from "../../../src/core/shapes/session.ts";
import { query } from "../route.ts";

type ListParams = ParamsOf<"sessions.list">;
type SessionKind = NonNullable<ListParams["kinds"]>[number];

export interface Wish {
  readonly shape: "tree" | "list";
  readonly search: string;
  readonly only: NonNullable<ListParams["only"]> | "";
  readonly kind: SessionKind | "";
  readonly agentId: string;
  readonly archived: boolean;
}

/** The gateway's limit for a search text. */
export const SEARCH_MAX_CHARS = 512;

const ONLY = ["running", "failed", "mine"] as const;

function oneOf<T extends string>(values: readonly T[], text: string | null): T | "" {
  return values.find((value) => value === text) ?? "";
}

/** Reads a choice from an address. */
export function wishOf(text: string): Wish {
  const params = new URLSearchParams(text);
  return {
    shape: params.get("shape") === "list" ? "list" : "tree",
    search: (params.get("search") ?? "").slice(0, SEARCH_MAX_CHARS),
    only: oneOf(ONLY, params.get("only")),
    kind: oneOf(SESSION_KINDS, params.get("kind")),
    agentId: params.get("agent") ?? "",
    archived: params.get("archived") === "yes",
  };
}

/** Writes a choice for the address, without what is chosen by default. */
export function queryOf({ shape, search, only, kind, agentId, archived }: Wish): string {
  const params = new URLSearchParams();
  const fields = {
    ...{ only, search: search.trim(), kind, agent: agentId },
    ...{ shape: shape === "list" ? shape : "", archived: archived ? "yes" : "" },
  };
  for (const [name, value] of Object.entries(fields)) if (value !== "") params.set(name, value);
  return params.toString();
}

export const wish = signal<Wish>(wishOf(query.value));

/** True while a search or a filter is set: matches are shown as one list, without their tree. */
export const isFiltered = computed(() => {
  const { search, only, kind, agentId } = wish.value;
  return search.trim() !== "" || only !== "" || kind !== "" || agentId !== "";
});
