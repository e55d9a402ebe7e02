// Lists sessions for the chat to choose from, those with the newest activity first.

import { optional } from "../../core/optional.ts";
import type { Link, Reply } from "../gateway-link.ts";
import { age } from "../layout.ts";
import type { Choice } from "./screen.ts";

const LISTED_MAX = 100;

/** `part`: part of the key, name or label. */
export async function sessionChoices(link: Link, part: string, nowMs: number): Promise<Reply<Choice[]>> {
  const search = part === "" ? undefined : part;
  const listed = await link.request("sessions.list", {
    limit: LISTED_MAX,
    includeDerivedTitles: true,
    ...optional({ search }),
  });
  if (!listed.ok) return listed;
  const choices = listed.value.sessions.map((row): Choice => {
    const { key, state, updatedAt, label, derivedTitle } = row;
    const facts = [state === "idle" ? `${age(updatedAt, nowMs)} ago` : state, label, derivedTitle];
    return { value: key, label: key, description: facts.filter((fact) => fact !== undefined).join(" · ") };
  });
  return { ok: true, value: choices };
}
