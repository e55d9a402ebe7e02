// Defines the methods about MCP servers and the programs of ACP agents.

import { about, flag, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, type MethodSpec, NOTHING, name, READ } from "./parts.ts";

const MCP_SERVER = named(
  "McpServerRow",
  "A configured MCP server.",
  object(
    {
      name: text(),
      transport: about(oneOf("stdio", "http"), "`stdio`: a program that the gateway starts."),
      place: text("Its program, or the origin of its address. Arguments and headers are not shown."),
      agents: list(text(), "Patterns of agents that may use it. Empty: all."),
      state: about(
        oneOf("idle", "starting", "ready", "down"),
        "`idle`: not needed since the start of the gateway, or since its connection ended.",
      ),
      tools: list(text(), "Names of its tools in the list that was read last."),
      leftOut: list(
        object({ tool: text("Its name on the server."), why: text() }),
        "Tools that agents do not get.",
      ),
    },
    {
      connectedSince: number(),
      backoffUntil: number("Earliest time of the next start by a run."),
      lastError: text(),
      lastErrorAt: number(),
      needsSignIn: flag("True if it has refused something until a person signs in (`servers.login`)."),
    },
  ),
);
export type McpServerRow = Of<typeof MCP_SERVER>;

const ACP_AGENT = named(
  "AcpAgentRow",
  "An agent that is an outside program.",
  object(
    {
      agentId: text(),
      program: text("Its program, without arguments."),
      sessions: list(text(), "Keys of the sessions whose program is running."),
    },
    {
      lastFailure: about(
        object({ sessionKey: text(), atMs: number(), error: text() }),
        "Its newest failed run, if it is among the last 5000 runs of the store that ended.",
      ),
    },
  ),
);
export type AcpAgentRow = Of<typeof ACP_AGENT>;

export const SERVER_METHODS = {
  "servers.list": {
    scope: READ,
    everySession: true,
    summary: `Lists the MCP servers and the ACP agents with their state. Starts none.`,
    params: NOTHING,
    result: object({
      ts: number(),
      servers: list(MCP_SERVER, "In the order of the configuration."),
      agents: list(ACP_AGENT),
    }),
  },
  "servers.test": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: `Starts an MCP server if it is not running, and reads its tools.`,
    params: object({ name: about(name, "Name of the MCP server.") }),
    result: MCP_SERVER,
    errors: ["mcp_unavailable"],
  },
  "servers.login": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: "Begins a sign-in at an MCP server. A person opens the returned address in a browser.",
    params: object({
      name: about(name, "Name of the MCP server."),
      redirectUrl: text("The address to which the browser comes back, of this gateway or of this computer."),
    }),
    result: object({ url: text("The address that the person opens.") }),
    errors: ["mcp_failed"],
  },
  "servers.login.finish": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: "Ends a sign-in, and reads the tools of the server.",
    params: object({ query: text("The query of the address to which the browser came back.") }),
    result: MCP_SERVER,
    errors: ["mcp_failed", "mcp_unavailable"],
  },
  "servers.logout": {
    scope: ADMIN,
    everySession: true,
    summary: "Forgets the tokens of an MCP server.",
    params: object({ name: about(name, "Name of the MCP server.") }),
    result: object({ ok: flag(), forgotten: flag("False if there were none.") }),
  },
} as const satisfies Record<string, MethodSpec>;
