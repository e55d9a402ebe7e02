// Checks whether each channel account works, and which people may write to the agents. If anybody may write
// to an account, this is always reported, even if it is intended.

import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Cli } from "../cli.ts";
import type { Finding } from "./finding.ts";

const NAME = "channels";

/** Warns about accounts to which anybody may write. */
function openDoors({ channels }: Settings): Finding[] {
  const open = channels.filter(({ dmPolicy, allowFrom }) => dmPolicy === "open" || allowFrom.includes("*"));
  if (open.length === 0) return [];
  const names = open.map(({ channel, accountId }) => `${channel}:${accountId}`).join(", ");
  const text = `anybody may write to ${names}, and an agent acts on the messages`;
  const mend = 'Set dmPolicy to "pairing" and remove "*" from allowFrom, unless this is intended.';
  return [{ name: NAME, level: "warning", text, mend }];
}

/** Warns if direct chats of several people share one session. */
function sharedMain({ channels, session }: Settings): Finding[] {
  const many = channels.filter(
    ({ allowFrom, dmPolicy }) => dmPolicy === "open" || allowFrom.includes("*") || allowFrom.length > 1,
  );
  if (session.dmScope !== "main" || many.length === 0) return [];
  const text = "several people share one main session, so the agent may tell one what another wrote";
  const mend = 'Set session.dmScope to "per-peer", unless they may all read each other\'s messages.';
  return [{ name: NAME, level: "warning", text, mend }];
}

export async function checkChannels(cli: Cli, settings: Settings): Promise<Finding[]> {
  const { inspectChannels } = cli.parts;
  if (settings.channels.length === 0 || inspectChannels === undefined) return [];
  const reports = await inspectChannels(settings.channels);
  const findings = reports.map(({ account, usable, text }): Finding => {
    const finding = { name: NAME, text: `${account}: ${text}` };
    if (usable) return { ...finding, level: "ok" };
    const [channel] = account.split(":");
    return {
      ...finding,
      level: "problem",
      mend: `See docs/${channel?.toUpperCase()}.md, then run: npx parley-gateway channels test`,
    };
  });
  return [...findings, ...openDoors(settings), ...sharedMain(settings)];
}
