// Builds the settings of MCP servers, and checks their keys: `tools.mcp`.
// MC1: a server is either a program or an address; keys of the other kind are an error.

import { optional } from "../core/optional.ts";
import type { McpSettings } from "../core/shapes/settings/settings.ts";
import { agentProblem } from "../core/shapes/settings/settings.ts";
import type { Path } from "../core/text/value-path.ts";
import type { ConfigFile } from "./schema/schema.ts";
import type { Problem } from "./source.ts";

type McpInFile = ConfigFile["tools"]["mcp"];

const OF_A_PROGRAM = ["args", "env", "cwd"] as const;
const OF_AN_ADDRESS = ["headers", "oauth"] as const;

type OauthInFile = NonNullable<McpInFile["servers"][string]["oauth"]>;

/** Checks that the keys of a sign-in fit together. */
function checkOauth(at: Path, oauth: OauthInFile, problems: Problem[]): void {
  const { grant, clientId, clientSecret, privateKey, authorizationServer, tokenFile, identityProvider } =
    oauth;
  const say = (key: string, text: string): void => void problems.push({ path: [...at, key], text });
  if (authorizationServer === undefined && clientSecret !== undefined)
    say("authorizationServer", "is required with a clientSecret: the secret is sent to no other server");
  else if (authorizationServer === undefined && grant !== undefined)
    say("authorizationServer", "is required with a grant: nothing is sent to any other server");
  if (grant !== undefined && clientId === undefined) say("clientId", "is required with a grant");
  const isByClient = grant === "client_credentials";
  if (isByClient && (clientSecret === undefined) === (privateKey === undefined))
    say("privateKey", "or clientSecret is required for client_credentials, but not both");
  if (!isByClient && privateKey !== undefined) say("privateKey", "is valid only for client_credentials");
  const isByToken = grant === "jwt_bearer";
  if (isByToken && tokenFile === undefined) say("tokenFile", "is required for jwt_bearer");
  if (!isByToken && tokenFile !== undefined) say("tokenFile", "is valid only for jwt_bearer");
  if (!isByToken && identityProvider !== undefined) say("identityProvider", "is valid only for jwt_bearer");
}

/** Checks that the keys of a server fit together. */
function checkKeys(at: Path, one: McpInFile["servers"][string], problems: Problem[]): void {
  const { command, url } = one;
  if (command === undefined && url === undefined)
    problems.push({ path: at, text: "must have a command (a program) or a url (an address)" });
  if (command !== undefined && url !== undefined)
    problems.push({
      path: [...at, "url"],
      text: "is not valid together with command; a server has only one of them",
    });
  if (one.oauth !== undefined) checkOauth([...at, "oauth"], one.oauth, problems);
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
    const { enabled, command, args, env, cwd, url, headers, oauth, agents, ...rest } = one;
    if (!enabled) return [];
    const whose = { ...rest, agents: agents.map((id) => id.toLowerCase()) };
    if (url !== undefined) {
      const { tokenFile } = oauth ?? {};
      const whole = tokenFile === undefined ? oauth : { ...oauth, tokenFile: expand(tokenFile) };
      const reach = { kind: "http" as const, url, headers: headers ?? {}, ...optional({ oauth: whole }) };
      return [{ name, ...whose, reach }];
    }
    if (command === undefined) return [];
    const program = command.startsWith("~/") ? expand(command) : command;
    const place = { cwd: expand(cwd ?? "."), args: args ?? [], env: env ?? {} };
    return [{ name, ...whose, reach: { kind: "stdio", command: program, ...place } }];
  });
  return { servers: complete, waitSeconds, maxResultBytes };
}
