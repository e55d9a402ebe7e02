// The face of an agent: its name, and the colour and letters of the mark beside it. Pure.
// AF1: colour and letters follow from the id and the name. If an earlier agent has the colour, the next free
//      one replaces it, so the colour can change with the agents. The settings `color` and `icon` replace
//      both.

import type { PayloadOf } from "../../../src/contract/methods.ts";
import { AGENT_COLORS } from "../../../src/core/shapes/settings/settings.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";

export type AgentList = PayloadOf<"agents.list">;
type Face = Pick<AgentList["agents"][number], "id" | "name" | "color" | "icon">;

export const agentIn = (sessionKey: string): string => /^agent:([^:]+):/.exec(sessionKey)?.[1] ?? "";

type Color = (typeof AGENT_COLORS)[number];

/** Returns the colour that follows from an id, or the next one that is not taken. */
function pickColor(id: string, taken: ReadonlySet<Color> = new Set()): Color {
  let sum = 0;
  for (const char of id) sum = (sum * 31 + char.charCodeAt(0)) % AGENT_COLORS.length;
  const colors = [...AGENT_COLORS.slice(sum), ...AGENT_COLORS.slice(0, sum)];
  return colors.find((color) => !taken.has(color)) ?? (colors[0] as Color);
}

/** Returns the face of an agent. One that is not listed has a face, too. */
export function faceIn(list: AgentList | undefined, id: string): Face {
  const taken = new Set(list?.agents.flatMap(({ color }) => color ?? []));
  for (const agent of list?.agents ?? []) {
    const color = agent.color ?? pickColor(agent.id, taken);
    if (agent.id === id) return { ...agent, color };
    taken.add(color);
  }
  return { id };
}

export const agentNameIn = (list: AgentList | undefined, id: string): string =>
  list?.agents.find((one) => one.id === id)?.name ?? id;

/** Returns the name to show for a session. Its agent's name replaces the id that names a main session. */
export function withAgentName(list: AgentList | undefined, key: string, name: string): string {
  const id = agentIn(key);
  return name === id ? agentNameIn(list, id) : name;
}

/** Returns the first characters of a text, as a reader counts them. */
function firstOf(text: string, count: number): string {
  return [...new Intl.Segmenter().segment(text)]
    .slice(0, count)
    .map(({ segment }) => segment)
    .join("");
}

function lettersOf({ id, name = id, icon }: Face): string {
  const words = safeLine(icon ?? name).split(/[\s_.-]+/);
  const [first = "", second = ""] = words.filter((word) => word !== "");
  return second === "" ? firstOf(first, 2) : firstOf(first, 1) + firstOf(second, 1);
}

export function markOf(face: Face) {
  const { id, name = id, color = pickColor(id) } = face;
  return {
    class: `agent-mark agent-${color}`,
    "data-letters": lettersOf(face),
    title: safeLine(name),
  };
}
