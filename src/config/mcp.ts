// Defines the schema and the checks of MCP servers in the configuration file: `tools.mcp`.
// MC1: a server is either a program or an address; keys of the other kind are an error.

import { z } from "zod";
import type { McpSettings } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import { agentProblem, DAY_SECONDS, httpAddress, limit, text, texts } from "./schema/fields.ts";
import type { Problem } from "./source.ts";

/**
 * A name has no `__`, and no `_` at either end. So `mcp__a__b__c` can only mean the tool `b__c` of the server
 * `a`.
 */
const SERVER_NAME = /^(?=.{1,24}$)[a-z0-9]+(?:(?:-+|_)[a-z0-9]+)*$/;

const server = z.strictObject({
  enabled: z.boolean().default(true).describe("False: disabled."),
  command: text.optional().describe("A program that speaks MCP over its standard input and output."),
  args: z.array(z.string()).optional().describe("Arguments of the program, passed without a shell."),
  env: z
    .record(text, z.string())
    .optional()
    .describe("Environment of the program, in addition to the gateway's PATH, HOME and a few others."),
  cwd: text.optional().describe("Working folder of the program. Default: the folder of this file."),
  url: httpAddress("headers")
    .optional()
    .describe("Address of a server for MCP over Streamable HTTP, instead of command."),
  headers: z.record(text, z.string()).optional().describe("HTTP headers that are sent with every request."),
  agents: texts
    .default([])
    .describe("Agents that may use the server, with `*` as a wildcard. Empty: every agent."),
  tools: texts
    .default([])
    .describe("The server's tools that may be used, with `*` as a wildcard. Empty: all."),
  allowSandboxed: z
    .boolean()
    .default(false)
    .describe("Whether sandboxed sessions may use the server, although it runs outside of every sandbox."),
  timeoutSeconds: limit(1, DAY_SECONDS)
    .default(60)
    .describe("Time limit of a call. A call that exceeds it fails, and the server is asked to cancel it."),
  startTimeoutSeconds: limit(1, 3_600).default(60).describe("Time limit of the server's start."),
});

export const mcp = z
  .strictObject({
    servers: z
      .record(
        z
          .string()
          .regex(
            SERVER_NAME,
            "must be 1 to 24 lower-case letters and digits, with - or single _ between them",
          ),
        server,
      )
      .default({})
      .describe("External MCP servers by name. Their tools are called mcp__<server>__<tool>."),
    waitSeconds: limit(0, 600)
      .default(10)
      .describe(
        "Maximum time that a run waits for servers that are not ready. Then it continues without them.",
      ),
    maxResultBytes: limit(1_000, 16 * 1024 ** 2)
      .default(64 * 1024)
      .describe("Maximum size of one result's text. Longer text is cut."),
  })
  .prefault({});

type McpInFile = z.output<typeof mcp>;
type ServerInFile = McpInFile["servers"][string];

const OF_A_PROGRAM = ["args", "env", "cwd"] as const;
const OF_AN_ADDRESS = ["headers"] as const;

/** Checks that the keys of a server fit together. */
function checkKeys(at: Path, one: ServerInFile, problems: Problem[]): void {
  const { command, url } = one;
  if (command === undefined && url === undefined)
    problems.push({ path: at, text: "must have a command (a program) or a url (an address)" });
  if (command !== undefined && url !== undefined)
    problems.push({
      path: [...at, "url"],
      text: "is not valid together with command; a server has only one of them",
    });
  const foreign = command === undefined ? OF_A_PROGRAM : OF_AN_ADDRESS;
  const wanted = command === undefined ? "command" : "url";
  if (command === undefined && url === undefined) return;
  for (const key of foreign) {
    if (one[key] !== undefined)
      problems.push({ path: [...at, key], text: `is valid only for a server with a ${wanted}` });
  }
}

/** Reports servers that have both a program and an address, or neither, and agents that do not exist. */
export function checkMcp(file: McpInFile, agentIds: readonly string[], problems: Problem[]): void {
  for (const [name, one] of Object.entries(file.servers)) {
    const at: Path = ["tools", "mcp", "servers", name];
    checkKeys(at, one, problems);
    for (const [index, agent] of one.agents.entries()) {
      const text = agent.includes("*") ? undefined : agentProblem(agent, agentIds);
      if (text !== undefined) problems.push({ path: [...at, "agents", index], text });
    }
  }
}

/** Returns the enabled servers with their defaults. `expand` makes a path absolute. */
export function mcpOf(file: McpInFile, expand: (path: string) => string): McpSettings {
  const { servers, waitSeconds, maxResultBytes } = file;
  const complete = Object.entries(servers).flatMap(([name, one]): McpSettings["servers"] => {
    const { enabled, command, args, env, cwd, url, headers, agents, ...rest } = one;
    if (!enabled) return [];
    const whose = { ...rest, agents: agents.map((id) => id.toLowerCase()) };
    if (url !== undefined) return [{ name, ...whose, reach: { kind: "http", url, headers: headers ?? {} } }];
    if (command === undefined) return [];
    const program = command.startsWith("~/") ? expand(command) : command;
    const place = { cwd: expand(cwd ?? "."), args: args ?? [], env: env ?? {} };
    return [{ name, ...whose, reach: { kind: "stdio", command: program, ...place } }];
  });
  return { servers: complete, waitSeconds, maxResultBytes };
}
