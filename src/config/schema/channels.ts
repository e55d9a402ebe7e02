// Defines the schema of channels and their accounts in the configuration file.

import { DM_POLICIES } from "../../core/shapes/settings/channels.ts";
import {
  address,
  choice,
  type Fields,
  flag,
  integer,
  list,
  map,
  number,
  object,
  optionalText,
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
const common = {
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

/** Keys of the accounts of each channel. The required ones define an account. */
export const accountKeys = {
  telegram: {
    ...common,
    botToken: optionalText("From @BotFather.", { shown: "secret", required: true }),
    apiRoot: address("URL of your own Bot API server. Default https://api.telegram.org.", {
      default: "https://api.telegram.org",
    }),
  },
  discord: {
    ...common,
    token: optionalText("Token of the bot, from the developer portal.", { shown: "secret", required: true }),
    restUrl: address("Default https://discord.com/api.", { default: "https://discord.com/api" }),
  },
  whatsapp: {
    ...common,
    phoneNumberId: optionalText("Id of the account's phone number.", { shown: "show", required: true }),
    accessToken: optionalText("Permanent token of a system user.", { shown: "secret", required: true }),
    appSecret: optionalText("Verifies signatures of web hooks: without it all are rejected.", {
      shown: "secret",
      required: true,
    }),
    verifyToken: optionalText("A word of your choice. Enter the same one when you set up the web hook.", {
      shown: "secret",
      required: true,
    }),
    graphUrl: address("Default https://graph.facebook.com/v23.0.", {
      default: "https://graph.facebook.com/v23.0",
    }),
  },
  signal: {
    ...common,
    number: optionalText("Number of the account, for example +491701234567.", {
      shown: "show",
      required: true,
    }),
    url: address("URL of the signal-cli daemon. Default http://127.0.0.1:8080.", {
      default: "http://127.0.0.1:8080",
    }),
  },
  imessage: {
    ...common,
    command: list(text(), 'The program that connects to Messages. Default ["imsg", "rpc"].', {
      minItems: 1,
      shown: "program",
      default: ["imsg", "rpc"],
    }),
    names: list(text(), 'Names that mention the agent in a group, alone or as @name. Default ["Parley"].', {
      default: ["Parley"],
    }),
    attachmentFolders: list(
      text("", { minLength: 1, pattern: [/^(?:~?\/|~$)/, "must begin with / or ~/"] }),
      "Attachments are read only from these folders. Default: the folder of Messages in ~/Library.",
      { default: ["~/Library/Messages/Attachments"] },
    ),
  },
};

const NAME = text("", { pattern: [/^[a-z0-9][a-z0-9_-]{0,31}$/, "must be 1 to 32 of a-z, 0-9, _ and -"] });

/** Returns the schema of a channel: its own keys describe one account, and `accounts` has further ones. */
function channel<F extends Fields>(keys: F) {
  const account = withoutDefaults(keys);
  const more = "More accounts by name. Omitted keys have the channel's values.";
  return object({ ...account, accounts: map(NAME, object(account), more) });
}

export const channels = section({
  telegram: channel(accountKeys.telegram),
  discord: channel(accountKeys.discord),
  whatsapp: channel(accountKeys.whatsapp),
  signal: channel(accountKeys.signal),
  imessage: channel(accountKeys.imessage),
  webchat: object({}, "This channel is always enabled and has no settings."),
});
