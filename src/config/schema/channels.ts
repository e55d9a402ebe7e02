// Defines the schema of channels and their accounts in the configuration file.

import type { Platform } from "../../channels/platform.ts";
import { DM_POLICIES } from "../../core/shapes/settings/channels.ts";
import { PLATFORMS } from "../../features.ts";
import {
  choice,
  flag,
  integer,
  map,
  number,
  object,
  section,
  text,
  texts,
  withoutDefaults,
} from "./setting.ts";

const bindings = {
  enabled: flag("Whether threads may be bound to sub-agents.", { default: true }),
  idleHours: number(
    "Ends a binding after this time without a message; 0: never.",
    { minimum: 0 },
    {
      default: 24,
    },
  ),
  maxAgeHours: number("Ends a binding at this age; 0: never.", { minimum: 0 }, { default: 0 }),
};

const bursts = {
  debounceMs: integer("Joins messages of one sender that arrive within this time. 0: off.", [0, 60_000], {
    default: 1_000,
  }),
  queue: choice(
    ["followup", "steer", "interrupt"],
    "Handling of a message during a run. followup: it is the next run. steer: the run reads it between " +
      "two steps. interrupt: it cancels the run. steer and interrupt need a run of the same chat.",
    { default: "followup" },
  ),
  mediaMaxMb: number(
    "Maximum size of a picture, voice message or file. For a larger one the agent gets only the name.",
    { exclusiveMinimum: 0, maximum: 100 },
    { default: 20 },
  ),
};

export const threadBindings = section(bindings);

/** Defaults of all channels; each channel may override them. */
export const inbound = section(bursts);

const group = object({
  enabled: flag("Whether anybody gets an answer in this group.", { default: true }),
  requireMention: flag(
    "Answer only messages that mention the agent or reply to it. Default: the account's value.",
  ),
  allowFrom: texts("Senders that get answers in this group. Unset: all."),
  agentId: text("Default: the account's."),
});

/** Keys of every account. If one is omitted, the value of the channel applies, else its default. */
export const accountKeys = {
  enabled: flag("Default true."),
  agentId: text("The agent that receives messages. Default: the default agent."),
  dmPolicy: choice(
    DM_POLICIES,
    "People who may send direct messages. pairing (default): people whom an operator approved; " +
      "others get a code. allowlist: allowFrom only. open: everybody. disabled: nobody.",
    { default: "pairing" },
  ),
  allowFrom: texts("Senders allowed without approval, also under pairing; `*`: everybody.", { default: [] }),
  groupPolicy: choice(
    ["allowlist", "open", "disabled"],
    "allowlist (default): groups in `groups`, and senders in groupAllowFrom anywhere. open: every group " +
      "that the account is in. disabled: none.",
    { default: "allowlist" },
  ),
  groupAllowFrom: texts("Senders that get answers in any group.", { default: [] }),
  requireMention: flag(
    "In groups, answer only messages that mention the agent or reply to it. Default true.",
    { default: true },
  ),
  groups: map(text(), group, "By group id; `*` applies to groups without an entry.", { default: {} }),
  steps: choice(
    ["all", "last"],
    "Texts of a run that its chat gets when the run ends, each once. all: also those between tool " +
      "calls. last: only the last one. Default: all in direct chats, last in groups.",
  ),
  inbound: object(withoutDefaults(bursts), "Overrides keys of `inbound`."),
  threadBindings: object(withoutDefaults(bindings), "Overrides keys of session.threadBindings."),
};

const NAME = text("", { pattern: [/^[a-z0-9][a-z0-9_-]{0,31}$/, "must be 1 to 32 of a-z, 0-9, _ and -"] });

/** Returns the schema of a channel: its own keys describe one account, and `accounts` has further ones. */
function channel({ settings }: Platform) {
  const account = withoutDefaults({ ...accountKeys, ...settings });
  const more = "More accounts by name. Omitted keys have the channel's values.";
  return object({ ...account, accounts: map(NAME, object(account), more) });
}

export const channels = section({
  ...Object.fromEntries(Object.entries(PLATFORMS).map(([id, platform]) => [id, channel(platform)])),
  webchat: object({}, "This channel is always enabled and has no settings."),
});
