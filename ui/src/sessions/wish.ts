// Owns the reader's choices for the session list (search, filters, layout), and converts them to and from the
// address. Unknown values in an address are ignored.

import { computed, signal } from "@preact/signals";
import type { ParamsOf } from "../../../src/contract/client/web.ts";
import { SESSION_KINDS } from "../../../src/core/shapes/session.ts";
import { queries } from "../route.ts";

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

/** Maximum length of a search text, a limit of the gateway. */
export const SEARCH_MAX_CHARS = 512;

export const ONLY_WORDS = { running: "Active", failed: "Failed", mine: "Mine" } as const;
const ONLY = Object.keys(ONLY_WORDS) as (keyof typeof ONLY_WORDS)[];

function oneOf<T extends string>(values: readonly T[], text: string | null): T | "" {
  return values.find((value) => value === text) ?? "";
}

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

/** Formats the choices for an address. Leaves out choices that equal the default. */
export function queryOf({ shape, search, only, kind, agentId, archived }: Wish): string {
  const fields = {
    only,
    search: search.trim(),
    kind,
    agent: agentId,
    shape: shape === "list" ? shape : "",
    archived: archived ? "yes" : "",
  };
  return new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== "")).toString();
}

export const wish = signal<Wish>(wishOf(queries.sessions.value));

/** True if a search or a filter is set. Then the matches are shown as a flat list. */
export const isFiltered = computed(() => {
  const { search, only, kind, agentId } = wish.value;
  return search.trim() !== "" || only !== "" || kind !== "" || agentId !== "";
});
