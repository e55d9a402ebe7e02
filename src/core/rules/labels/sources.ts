// Names the sources of texts that are outside, which nobody among owners, operators and the configuration
// wrote, and of private ones. A session and a chain are marked with them; a reset ends the marks of a
// session. A run that is accepted in a marked session or chain marks both, so that labels follow sends,
// spawns, replies and announcements.

import type { RunInput } from "../../shapes/run.ts";
import { peerInKey } from "../../shapes/session-key.ts";
import type { Settings } from "../../shapes/settings/settings.ts";
import { cut } from "../../text/cut.ts";
import { isOwner } from "../inbound-policy.ts";
import { strangersInMain } from "../prompt/memory.ts";

const HOST_MAX_CHARS = 100;

/** Returns the source of outside content in the input of a run, or undefined if it has none. */
export function outsideInput(
  { outside, guest, sender, provenance }: RunInput,
  sessionKey: string,
): string | undefined {
  if (outside !== undefined || guest !== true) return outside;
  if (sender !== undefined) return `guest ${sender}`;
  if (provenance?.kind === "inter_session") {
    const peer = peerInKey(provenance.sourceSessionKey)?.peer;
    if (peer !== undefined) return `peer ${peer}`;
  }
  if (provenance?.kind === "hook" || provenance?.kind === "node")
    return [provenance.kind, provenance.source ?? ""].join(" ").trim();
  return `guest ${sessionKey}`;
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

/**
 * Returns the sources of the texts of others that a message quotes or forwards. An owner's texts and those of
 * the sender are no such ones.
 */
export function passedOnSources(
  { owners }: Pick<Settings, "owners">,
  message: {
    readonly channel: string;
    readonly sender: { readonly id: string; readonly alsoKnownAs?: readonly string[] };
    readonly authors?: readonly (readonly string[])[];
  },
): string[] {
  const { channel, sender, authors = [] } = message;
  const own = [sender.id, ...(sender.alsoKnownAs ?? [])];
  const others = authors.filter(
    (ids) => !ids.some((id) => own.includes(id) || isOwner(owners, channel, { id })),
  );
  const sources = others.map(([id]) =>
    id === undefined ? `forwarded ${channel}` : `guest ${channel}:${id}`,
  );
  return [...new Set(sources)];
}

/** Returns the source of a page. The rest of its address may be a text of the session. */
export const webSource = (address: string): string =>
  `web ${URL.canParse(address) ? cut(new URL(address).host, HOST_MAX_CHARS) : "?"}`;

/** Programs that bring texts from elsewhere, and commands of others that do. */
const FETCHERS = "curl|wget|lynx|w3m|nc|ncat|ssh|scp|sftp|rsync|ftp|telnet|gh|glab";
const OF_GIT = "git (?:clone|fetch|pull|ls-remote)";
const MANAGERS = "npm|pnpm|yarn|pip3?|cargo|go|gem|brew|apt|apt-get";
const OF_MANAGERS = `(?:${MANAGERS}) (?:add|get|info|install|search|update|upgrade|view)`;
const FETCHES = new RegExp(`(?:^|[\\s;|&(\`"'/])(${FETCHERS}|${OF_GIT}|${OF_MANAGERS})(?:\\s|$)|[a-z]://`);

/** Returns the source of a command's output that is outside, or undefined if nothing says that it is. */
export function outsideCommand(command: string): string | undefined {
  const program = FETCHES.exec(command);
  return program === null ? undefined : `command ${program[1] ?? "with an address"}`;
}

/** Returns where a tool can write files. */
export function writesIn(tool: string, contained: boolean): "nowhere" | "workspace" | "anywhere" {
  if (tool === "write" || tool === "edit") return "workspace";
  if (tool === "exec") return contained ? "workspace" : "anywhere";
  return tool === "nodes" || tool.startsWith("mcp__") ? "anywhere" : "nowhere";
}
