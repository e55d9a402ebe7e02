// Reads in a program's report of a tool call of its own which content the call has read and written. The
// report is all that Parley knows of the call, so an unclear one has no label.

import { textOf } from "../../json.ts";
import { outsideCommand, webSource } from "./sources.ts";

/** Name of the MCP server with which a program calls Parley's own tools, which name their content. */
const OWN_SERVER = "parley";
const PATH_ARGUMENTS = ["path", "file_path", "filePath", "absolute_path", "abs_path", "notebook_path"];
const URLS_MAX = 20;

/** A tool call, as an ACP program reports it. */
export interface ReportedCall {
  /** The names of the tool, in the report and in its additions. */
  readonly names: readonly string[];
  /** `read`, `edit`, `move`, `search`, `execute`, `fetch` or another word of the protocol. */
  readonly kind: string;
  readonly title: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Files that the call is about. */
  readonly paths: readonly string[];
  /** Files that the call has written as a whole. */
  readonly created: readonly string[];
}

/** A call of a tool of Parley that reads or writes the same files. */
export interface FileCall {
  readonly name: "read" | "write" | "edit" | "exec";
  readonly arguments: { readonly path?: string; readonly command?: string };
}

export interface ReportedContent {
  /** Sources of content from outside. */
  readonly outside: readonly string[];
  readonly reads: readonly FileCall[];
  readonly writes: readonly FileCall[];
}

const NOTHING: ReportedContent = { outside: [], reads: [], writes: [] };

/** Returns the MCP server of a call, if the report names one. */
function serverOf({ names, title, args }: ReportedCall): string | undefined {
  const [, named] = names.map((name) => /^mcp__(.+?)__/.exec(name)).find((match) => match !== null) ?? [];
  const [, titled] = /^\S+ \((\S+) MCP Server\)$/.exec(title) ?? [];
  // Other arguments are those of a tool that does something else.
  const isOfServer = Object.keys(args).every((name) => ["server", "tool", "arguments"].includes(name));
  const given = isOfServer && textOf(args.tool) !== undefined ? textOf(args.server) : undefined;
  return named ?? titled ?? given;
}

/** Returns the command of a call. Some programs report the words of the shell that runs it. */
function commandOf({ args, title }: ReportedCall): string {
  const command = args.command ?? args.cmd;
  if (!Array.isArray(command)) return textOf(command) ?? title;
  const isOfShell = command.length === 3 && /^-l?c$/.test(String(command[1]));
  return isOfShell ? String(command[2]) : command.join(" ");
}

const isWebSearch = ({ names, title }: ReportedCall): boolean =>
  names.some((name) => /web|internet/i.test(name)) || /^(?:search(?:ing)? the )?web\b/i.test(title);

/** Returns the content of a call of an agent's program. */
export function readReport(agentId: string, call: ReportedCall): ReportedContent {
  const { args, created, kind } = call;
  const server = serverOf(call);
  if (server !== undefined)
    return server === OWN_SERVER ? NOTHING : { ...NOTHING, outside: [`mcp ${server}`] };
  const given = PATH_ARGUMENTS.flatMap((name) => textOf(args[name]) ?? []);
  const paths = [...new Set([...given, ...call.paths, ...created])];
  const reads = paths.map((path) => ({ name: "read", arguments: { path } }) as const);
  const urls = Object.values(args)
    .flat()
    .filter((one) => typeof one === "string" && /^https?:/i.test(one) && URL.canParse(one))
    .slice(0, URLS_MAX) as string[];
  const pages = [...new Set(urls.map(webSource))];
  const web = { ...NOTHING, outside: pages.length > 0 ? pages : [`program ${agentId}`] };
  switch (kind) {
    case "fetch":
      return web;
    case "execute": {
      const command = commandOf(call);
      const source = outsideCommand(command);
      const files: FileCall = { name: "exec", arguments: { command } };
      return { outside: source === undefined ? [] : [source], reads: [files], writes: [files] };
    }
    case "edit":
    case "move": {
      const writes = paths.map((path): FileCall => {
        const name = created.includes(path) ? "write" : "edit";
        return { name, arguments: { path } };
      });
      return {
        outside: [],
        reads: reads.filter(({ arguments: { path } }) => !created.includes(path)),
        writes,
      };
    }
    case "delete":
    case "think":
    case "switch_mode":
      return NOTHING;
    case "search":
      if (isWebSearch(call)) return web;
      return { ...NOTHING, reads: reads.length > 0 ? reads : [{ name: "read", arguments: {} }] };
    default:
      return pages.length > 0 ? web : { ...NOTHING, reads };
  }
}
