// Decides which content is outside: nobody among owners, operators and the configuration wrote it. A session
// and a chain are marked with the source of their first such content; a reset ends the mark of a session. A
// run that is accepted in a marked session or chain marks both, so the mark follows sends, spawns, replies
// and announcements.

import type { RunInput } from "../../shapes/run.ts";
import type { Settings } from "../../shapes/settings/settings.ts";
import { cut } from "../../text/cut.ts";
import { strangersInMain } from "./memory.ts";

const HOST_MAX_CHARS = 100;

/** Returns the source of outside content in the input of a run, or undefined if it has none. */
export function outsideInput(
  { outside, guest, sender, provenance }: RunInput,
  sessionKey: string,
): string | undefined {
  if (outside !== undefined || guest !== true) return outside;
  if (sender !== undefined) return `guest ${sender}`;
  if (provenance?.kind === "hook" || provenance?.kind === "node")
    return [provenance.kind, provenance.source ?? ""].join(" ").trim();
  return `guest in ${sessionKey}`;
}

/**
 * Returns whether somebody on a channel is outside. In a direct chat of a main session without configured
 * owners, the people whom the operator admitted one by one are not.
 */
export function isOutsider(
  settings: Settings,
  { isOwner, isDirect }: { readonly isOwner: boolean; readonly isDirect: boolean },
): boolean {
  if (isOwner) return false;
  return !isDirect || settings.owners.length > 0 || strangersInMain(settings);
}

/** Returns the source of a tool's result that is outside, or undefined for any other tool. */
export function outsideResult(tool: string, args: Readonly<Record<string, unknown>>): string | undefined {
  // The rest of the address may be a text of the session.
  if (tool === "fetch") {
    const address = String(args.url);
    return `web page of ${URL.canParse(address) ? cut(new URL(address).host, HOST_MAX_CHARS) : "?"}`;
  }
  if (tool === "search") return "web search";
  return tool.startsWith("mcp__") ? `MCP server ${tool.split("__")[1]}` : undefined;
}

/** Returns where a tool can write files. */
export function writesIn(tool: string, contained: boolean): "nowhere" | "workspace" | "anywhere" {
  if (tool === "write" || tool === "edit") return "workspace";
  if (tool === "exec") return contained ? "workspace" : "anywhere";
  return tool === "nodes" || tool.startsWith("mcp__") ? "anywhere" : "nowhere";
}
