// Facts about a session for its row in the list, besides name and state.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import { forkOrigin } from "../../../src/core/fork-key.ts";
import { shortKey } from "./own-name.ts";

/** Height of every line of the list, in CSS pixels: enough for a finger. */
export const ROW_HEIGHT = 44;
const FORMS: Readonly<Record<string, string>> = { subagent: "sub-agent", dm: "direct chat" };

/** Returns a word for the kind of a session, for "other" one from its key, like `sub-agent`. */
function kindWord({ key, sessionKind }: ListedRow): string {
  if (forkOrigin(key) !== undefined) return "fork";
  if (sessionKind !== "other") return sessionKind;
  const form = /^agent:[^:]+:([a-z]+):/.exec(key)?.[1] ?? "other";
  return FORMS[form] ?? form;
}

/** Returns facts that the name of the session does not contain. `agent`: the name of its agent. */
export function factsOf(row: ListedRow, name: string, agent: string): string {
  const said = name === shortKey(row.key) ? name.split(/[ ·]+/).map((word) => FORMS[word] ?? word) : [];
  const kind = row.sessionKind === "main" ? "" : kindWord(row);
  const channel = row.channel === "unknown" ? "" : row.channel;
  const words = [...new Set([agent, kind, channel])].filter((word) => !["", name, ...said].includes(word));
  return words.join(" · ");
}
