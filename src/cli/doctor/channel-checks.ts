// Owns what the doctor finds about channels: whether each account works, and who may write to the agents.
// CC1: what lets strangers in is said every time; it may be meant.

import type { Settings } from "../../core/settings.ts";
import type { Cli } from "../cli.ts";
import type { Finding } from "./finding.ts";

const NAME = "channels";

/** Accounts at which anybody may write. */
function openDoors({ channels }: Settings): Finding[] {
  const open = channels.filter(({ dmPolicy, allowFrom }) => dmPolicy === "open" || allowFrom.includes("*"));
  if (open.length === 0) return [];
  const names = open.map(({ channel, accountId }) => `${channel}:${accountId}`).join(", ");
  const text = `anybody may write to ${names}, and an agent acts on it`;
  const mend = 'Set dmPolicy to "pairing", and take "*" out of allowFrom, unless that is meant.';
  return [{ name: NAME, level: "warning", text, mend }];
}

/** Direct chats of several people that end in one session. */
function sharedMain({ channels, session }: Settings): Finding[] {
  const many = channels.filter(
    ({ allowFrom, dmPolicy }) => dmPolicy === "open" || allowFrom.includes("*") || allowFrom.length > 1,
  );
  if (session.dmScope !== "main" || many.length === 0) return [];
  const text = "several people write to one main session: what one says, the agent may tell another";
  const mend = 'Set session.dmScope to "per-peer", unless they may all read each other.';
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
      mend: `See docs/${channel?.toUpperCase()}.md, and parley channels test.`,
    };
  });
  return [...findings, ...openDoors(settings), ...sharedMain(settings)];
}
