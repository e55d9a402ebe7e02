// Defines the schema of channels and their accounts in the configuration file.

import { z } from "zod";
import { DM_POLICIES, GROUP_POLICIES, QUEUE_MODES, STEP_MODES } from "../../core/shapes/settings/channels.ts";
import { httpAddress, limit, optionalText, text, texts } from "./fields.ts";

/** Maximum of `debounceMs`. Messages of one sender that arrive within this time are joined. */
const DEBOUNCE_MAX_MS = 60_000;
const MEDIA_MAX_MB = 100;

/**
 * Keys of `session.threadBindings` and of each channel. The keys of a channel have no defaults, so that one
 * can tell which are omitted.
 */
const bindingKeys = {
  enabled: z.boolean().describe("Whether threads may be bound to sub-agents."),
  idleHours: z.number().min(0).describe("Ends a binding after this time without a message; 0: never."),
  maxAgeHours: z.number().min(0).describe("Ends a binding at this age; 0: never."),
};

const inboundKeys = {
  debounceMs: limit(0, DEBOUNCE_MAX_MS).describe(
    "Joins messages of one sender that arrive within this time. 0: off.",
  ),
  queue: z
    .enum(QUEUE_MODES)
    .describe(
      "Handling of a message during a run. followup: it is the next run. steer: the run reads it between " +
        "two steps. interrupt: it cancels the run. steer and interrupt need a run of the same chat.",
    ),
  mediaMaxMb: z
    .number()
    .positive("must be more than 0")
    .max(MEDIA_MAX_MB)
    .describe(
      "Maximum size of a picture, voice message or file. For a larger one the agent gets only the name.",
    ),
};

export const threadBindings = z
  .strictObject({
    enabled: bindingKeys.enabled.default(true),
    idleHours: bindingKeys.idleHours.default(24),
    maxAgeHours: bindingKeys.maxAgeHours.default(0),
  })
  .prefault({});

/** Defaults of all channels; each channel may override them. */
export const inbound = z
  .strictObject({
    debounceMs: inboundKeys.debounceMs.default(1_000),
    queue: inboundKeys.queue.default("followup"),
    mediaMaxMb: inboundKeys.mediaMaxMb.default(20),
  })
  .prefault({});

const peers = texts.describe("Ids in the platform's format; `*`: everybody.");

const group = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether anybody gets an answer in this group."),
  requireMention: z
    .boolean()
    .optional()
    .describe("Answer only messages that mention the agent or reply to it. Default: the account's value."),
  allowFrom: peers.optional().describe("Senders that get answers in this group. Unset: all."),
  agentId: text.optional().describe("Default: the account's."),
});

/** Keys of every account. If a key is omitted, the value of the channel applies, else the default. */
const common = {
  enabled: z.boolean().optional().describe("Default true."),
  agentId: text.optional().describe("The agent that receives messages. Default: the default agent."),
  dmPolicy: z
    .enum(DM_POLICIES)
    .optional()
    .describe(
      "People who may send direct messages. pairing (default): people whom an operator approved; " +
        "others get a code. allowlist: allowFrom only. open: everybody. disabled: nobody.",
    ),
  allowFrom: peers
    .optional()
    .describe("Senders allowed without approval, also under pairing; `*`: everybody."),
  groupPolicy: z
    .enum(GROUP_POLICIES)
    .optional()
    .describe(
      "allowlist (default): groups in `groups`, and senders in groupAllowFrom anywhere. open: every group " +
        "that the account is in. disabled: none.",
    ),
  groupAllowFrom: peers.optional().describe("Senders that get answers in any group."),
  requireMention: z
    .boolean()
    .optional()
    .describe("In groups, answer only messages that mention the agent or reply to it. Default true."),
  groups: z.record(text, group).optional().describe("By group id; `*` applies to groups without an entry."),
  steps: z
    .enum(STEP_MODES)
    .optional()
    .describe(
      "Texts of a run that its chat gets when the run ends, each once. all: also those between tool " +
        "calls. last: only the last one. Default: all in direct chats, last in groups.",
    ),
  inbound: z.strictObject(inboundKeys).partial().optional().describe("Overrides keys of `inbound`."),
  threadBindings: z
    .strictObject(bindingKeys)
    .partial()
    .optional()
    .describe("Overrides keys of session.threadBindings."),
};

const telegram = {
  botToken: optionalText.describe("From @BotFather."),
  apiRoot: httpAddress()
    .optional()
    .describe("URL of your own Bot API server. Default https://api.telegram.org."),
};
const discord = {
  token: optionalText.describe("Token of the bot, from the developer portal."),
  restUrl: httpAddress().optional().describe("Default https://discord.com/api."),
};
const whatsapp = {
  phoneNumberId: optionalText.describe("Id of the account's phone number."),
  accessToken: optionalText.describe("Permanent token of a system user."),
  appSecret: optionalText.describe("Verifies signatures of web hooks: without it all are rejected."),
  verifyToken: optionalText.describe(
    "A word of your choice. Enter the same one when you set up the web hook.",
  ),
  graphUrl: httpAddress().optional().describe("Default https://graph.facebook.com/v23.0."),
};
const signal = {
  number: optionalText.describe("Number of the account, for example +491701234567."),
  url: httpAddress().optional().describe("URL of the signal-cli daemon. Default http://127.0.0.1:8080."),
};
const imessage = {
  command: z
    .array(text)
    .min(1)
    .optional()
    .describe('The program that connects to Messages. Default ["imsg", "rpc"].'),
  names: z
    .array(text)
    .optional()
    .describe('Names that mention the agent in a group, alone or as @name. Default ["Parley"].'),
  attachmentFolders: z
    .array(text.regex(/^(?:~?\/|~$)/, "must begin with / or ~/"))
    .optional()
    .describe("Attachments are read only from these folders. Default: the folder of Messages in ~/Library."),
};

const ACCOUNT = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/**
 * Returns the schema of a channel. Its own keys describe one account, and `accounts` has further ones by
 * name.
 */
function channel<T extends z.ZodRawShape>(own: T) {
  const account = z.strictObject({ ...common, ...own });
  return account
    .extend({
      accounts: z
        .record(z.string().regex(ACCOUNT, "must be 1 to 32 of a-z, 0-9, _ and -"), account)
        .optional()
        .describe("More accounts by name. Omitted keys have the channel's values."),
    })
    .optional();
}

export const channels = z
  .strictObject({
    telegram: channel(telegram),
    discord: channel(discord),
    whatsapp: channel(whatsapp),
    signal: channel(signal),
    imessage: channel(imessage),
    webchat: z.strictObject({}).optional().describe("This channel is always enabled and has no settings."),
  })
  .prefault({});
