// The shape of the sources of an agent's settings: where the configuration file sets each value.

/** `agent`: its entry in agents.list. `defaults`: agents.defaults. `built-in`: nowhere. */
export const VALUE_SOURCES = ["agent", "defaults", "built-in"] as const;
export type ValueSource = (typeof VALUE_SOURCES)[number];

/** The source of each value, by the path below an agent, for each agent id. */
export type AgentSources = Readonly<Record<string, Readonly<Record<string, ValueSource>>>>;
