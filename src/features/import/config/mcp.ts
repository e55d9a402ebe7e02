// Maps the source's MCP servers.
// CM1: a tool that was hidden there stays hidden: it is denied for every agent.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, isObject } from "../../../core/json.ts";
import { countIn, textIn, textsIn } from "../fields.ts";
import { noteRest } from "./tree.ts";

const SERVERS_MAX = 100;
const NAME_CHARS_MAX = 24;

/** Returns the texts and numbers of an object as texts, or undefined if there are none. */
export function textsByName(value: unknown): Tree | undefined {
  const texts = Object.entries(fieldsOf(value)).flatMap(([name, one]) =>
    typeof one === "string" || typeof one === "number" ? [[name, String(one)] as const] : [],
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

const secondsIn = (ms: unknown): number | undefined => {
  const count = countIn(ms);
  return count === undefined ? undefined : Math.max(1, Math.round(count / 1_000));
};

function mapServer(server: Tree, where: string, notes: string[]): Tree | undefined {
  const { command, args, env, cwd, url, headers, transport, type, enabled, disabled, ...more } = server;
  const { toolFilter, requestTimeoutMs, connectionTimeoutMs, auth, oauth, ...rest } = more;
  const kind = textIn(transport ?? type, 40);
  if (kind === "sse") {
    notes.push(`${where} uses the transport sse, which Parley does not support, so it is skipped`);
    return undefined;
  }
  if (auth !== undefined || oauth !== undefined)
    notes.push(`${where}: its sign-in is not imported: set a header with a token by hand`);
  noteRest(rest, where, notes);
  const tools = textsIn(fieldsOf(toolFilter).include);
  const common = {
    enabled: enabled === false || disabled === true ? false : undefined,
    tools: tools.length === 0 ? undefined : tools,
    timeoutSeconds: secondsIn(requestTimeoutMs),
    startTimeoutSeconds: secondsIn(connectionTimeoutMs),
  };
  const address = textIn(url, 2_000);
  if (address !== undefined) return { ...common, url: address, headers: textsByName(headers) };
  const program = textIn(command, 1_000);
  if (program === undefined) return undefined;
  return { ...common, command: program, args: textsIn(args), env: textsByName(env), cwd: textIn(cwd, 2_000) };
}

/** Maps the servers. Returns them by name, and the patterns of the tools to deny. */
export function mapMcp(servers: unknown, notes: string[]): { servers: Tree; deny: string[] } {
  const mapped = new Map<string, Tree>();
  const deny: string[] = [];
  for (const [source, value] of Object.entries(fieldsOf(servers)).slice(0, SERVERS_MAX)) {
    const where = `mcp.servers.${source.slice(0, 80)}`;
    const name = source
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .slice(0, NAME_CHARS_MAX)
      .replaceAll(/^-|-$/g, "");
    const server = isObject(value) ? mapServer(value, where, notes) : undefined;
    if (server === undefined) continue;
    if (name === "" || mapped.has(name)) {
      notes.push(`${where} is skipped: another server has the name ${name}`);
      continue;
    }
    if (name !== source) notes.push(`${where} is named ${name} here`);
    mapped.set(name, server);
    const hidden = textsIn(fieldsOf(fieldsOf(value).toolFilter).exclude);
    deny.push(...hidden.map((tool) => `mcp__${name}__${tool}`));
  }
  return { servers: Object.fromEntries(mapped), deny };
}
