// Defines the settings of A2A: those of the door, and those of agents elsewhere.

import {
  address,
  flag,
  map,
  optionalText,
  section,
  text,
  texts,
  type Values,
} from "../../config/schema/setting.ts";
import { optional } from "../../core/optional.ts";
import type { Path } from "../../core/text/value-path.ts";

const DOOR = {
  expose: texts("Agents that A2A clients with a token can reach; their cards are public. Default: none.", {
    default: [],
  }),
  notifyHosts: texts(
    "Hosts that clients may have notified when a task ends, like `agents.example.com:8443`.",
    {
      default: [],
    },
  ),
  descriptions: map(
    text("", { minLength: 0 }),
    text("", { maxLength: 1_000, trims: true }),
    'What the card of an agent says about it, by agent id, like `{ research: "…" }`.',
    { default: {} },
  ),
};
export const A2A_SETTINGS = section(DOOR);

export const RUNTIME = {
  card: address("Required for a2a: the address of the agent's card, or of its folder. May be private.", {
    instead: "token",
  }),
  token: optionalText("For a2a: bearer token that is sent to the agent."),
  key: text("For a2a: thumbprint of the key that must sign the card: `kid` in a gateway's `/a2a/jwks.json`."),
  allowUnsigned: flag("For a2a: whether a card that is not signed is used. Set it if the agent signs none.", {
    default: false,
  }),
};
type RuntimeInFile = Values<typeof RUNTIME> & { readonly type: string };

/** Settings of an agent that is reached over A2A. No host but that of its card is reached. */
export interface A2aRuntime extends Values<typeof RUNTIME> {
  readonly card: string;
}

/** Reports keys of an agent over A2A that are missing or contradict each other. */
export function checkRuntime(
  { type, card, key, token, allowUnsigned }: RuntimeInFile,
  tell: (name: string, text: string) => void,
): void {
  if (type !== "a2a") {
    const given = { card, key, token, allowUnsigned: allowUnsigned || undefined };
    for (const name of Object.keys(optional(given))) tell(name, 'is valid only with runtime.type "a2a"');
    return;
  }
  if (card === undefined) tell("card", "is missing; must be the address of the agent's card");
  if (key === undefined && !allowUnsigned)
    tell("key", "is missing; it is `kid` in the agent's /a2a/jwks.json. If there is none, set allowUnsigned");
}

/** Returns the settings of the door, with agent ids in lower case. Reports names that are no ids. */
export function readSettings(
  { a2a: { expose, notifyHosts, descriptions } }: { readonly a2a: Values<typeof DOOR> },
  checkAgent: (name: string, path: Path) => void,
): object {
  for (const [index, name] of expose.entries()) checkAgent(name, ["a2a", "expose", index]);
  for (const name of Object.keys(descriptions)) checkAgent(name, ["a2a", "descriptions", name]);
  const idOf = (name: string): string => name.trim().toLowerCase();
  const a2a = {
    expose: [...new Set(expose.map(idOf))],
    notifyHosts: notifyHosts.map(idOf),
    descriptions: Object.fromEntries(Object.entries(descriptions).map(([name, text]) => [idOf(name), text])),
  };
  return { a2a };
}
