// The shape of the sources of an agent's settings: where the configuration file sets each value.

/**
 * Places that can set a value. `agent`: the agent's entry in `agents.list`. `defaults`: `agents.defaults`.
 * `built-in`: the file does not set the value.
 */
export const VALUE_SOURCES = ["agent", "defaults", "built-in"] as const;
export type ValueSource = (typeof VALUE_SOURCES)[number];

/** For each agent id: the source of each value, by the path of the value in the agent's settings. */
export type AgentSources = Readonly<Record<string, Readonly<Record<string, ValueSource>>>>;
