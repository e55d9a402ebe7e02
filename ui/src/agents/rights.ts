// Says in words what an agent may do, from the names of its tools. Pure.

import type { AgentDetails } from "../../../src/contract/methods/agents.ts";

/** Tools by what they are for, in the order of the sentence. */
const ABILITIES: readonly (readonly [words: string, tools: RegExp])[] = [
  ["read files", /^(read|grep|glob)$/],
  ["change files", /^(write|edit)$/],
  ["run commands", /^exec$/],
  ["read the web", /^(fetch|search)$/],
  ["write to other sessions", /^sessions_send$/],
  ["start sub-agents", /^sessions_spawn$/],
  ["write to people", /^(message|send_file)$/],
  ["schedule work", /^cron$/],
  ["use devices", /^nodes$/],
  ["use tools of servers", /__/],
];
const APPROVALS = { always: "each needs approval", risky: "risky ones need approval", never: "" };

const list = new Intl.ListFormat("en", { type: "conjunction" });

function commandWords({ approval, sandbox }: AgentDetails): string {
  const isIsolated = sandbox.mode !== "off";
  const words = [
    approval === undefined ? "" : APPROVALS[approval],
    isIsolated ? `in a sandbox ${sandbox.network ? "with" : "without"} network` : "",
  ].filter((one) => one !== "");
  return words.length === 0 ? "" : ` (${words.join("; ")})`;
}

/** Returns the sentence, or undefined if the reader may not know the tools. */
export function rightsWords(agent: AgentDetails): string | undefined {
  const { runtime, tools } = agent;
  if (runtime !== "built-in") return "Its own program decides about its tools.";
  if (tools === undefined) return undefined;
  const abilities = ABILITIES.filter(([, names]) => tools.some((tool) => names.test(tool))).map(([words]) =>
    words === "run commands" ? words + commandWords(agent) : words,
  );
  return abilities.length === 0 ? "May only answer." : `May ${list.format(abilities)}.`;
}
