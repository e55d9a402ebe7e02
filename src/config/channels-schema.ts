// Owns the keys of the configuration file about channels: what each account may have.

import { z } from "zod";
import { DM_POLICIES, GROUP_POLICIES, QUEUE_MODES } from "../core/channel-settings.ts";
import { httpAddress, limit, optionalText, text, texts } from "./fields.ts";

/** The longest pause that messages are joined over. */
const DEBOUNCE_MAX_MS = 60_000;
const MEDIA_MAX_MB = 100;

/** The same keys in two places: of a channel none has a default, so that what it leaves out is seen. */
const bindingKeys = {
  enabled: z.boolean().describe("Whether threads may be bound to sub-agents."),
  idleHours: z.number().min(0).describe("A binding ends after this time without a message; 0: never."),
  maxAgeHours: z.number().min(0).describe("A binding ends at this age; 0: never."),
};

const inboundKeys = {
  debounceMs: limit(0, DEBOUNCE_MAX_MS).describe(
    "Messages of one sender within this time of each other are one. 0: each is its own.",
  ),
  queue: z
    .enum(QUEUE_MODES)
    .describe(
      "A message during a run. followup: it is the next run. steer: the run reads it between two steps. " +
        "interrupt: the run is ended for it. The last two only where the run answers the same place.",
    ),
  mediaMaxMb: z
    .number()
    .positive("must be more than 0")
    .max(MEDIA_MAX_MB)
    .describe("Of one picture, voice message or file; what is larger is only named."),
};

export const threadBindings = z
  .strictObject({
    enabled: bindingKeys.enabled.default(true),
    idleHours: bindingKeys.idleHours.default(24),
    maxAgeHours: bindingKeys.maxAgeHours.default(0),
  })
  .prefault({});

/** For every channel; each may say otherwise. */
export const inbound = z
  .strictObject({
    debounceMs: inboundKeys.debounceMs.default(1_000),
    queue: inboundKeys.queue.default("followup"),
    mediaMaxMb: inboundKeys.mediaMaxMb.default(20),
  })
  .prefault({});

const peers = texts.describe("Ids as the platform writes them; `*`: everybody.");

const group = z.strictObject({
  enabled: z.boolean().default(true).describe("False: nobody is answered there."),
  requireMention: z
    .boolean()
    .optional()
    .describe("Only what names the agent or replies to it is answered. Default: the account's."),
  allowFrom: peers.optional().describe("Senders that are answered there. Unset: all."),
  agentId: text.optional().describe("Default: the account's."),
});

/** What every account has; unset: what the channel says, and then the default. */
const common = {
  enabled: z.boolean().optional().describe("Default true."),
  agentId: text.optional().describe("The agent that gets what comes in. Default: the default agent."),
  dmPolicy: z
    .enum(DM_POLICIES)
    .optional()
    .describe(
      "Who may write directly. pairing (default): whoever an operator let in, a stranger gets a code. " +
        "allowlist: allowFrom only. open: everybody. disabled: nobody.",
    ),
  allowFrom: peers.optional().describe("Let in without asking, under pairing too; `*`: everybody."),
  groupPolicy: z
    .enum(GROUP_POLICIES)
    .optional()
    .describe(
      "allowlist (default): groups in `groups`, and senders in groupAllowFrom anywhere. open: every group " +
        "that the account is in. disabled: none.",
    ),
  groupAllowFrom: peers.optional().describe("Senders that are answered in any group."),
  requireMention: z
    .boolean()
    .optional()
    .describe("In groups only what names the agent or replies to it is answered. Default true."),
  groups: z.record(text, group).optional().describe("By the group's id; `*` is all that are not named."),
  inbound: z.strictObject(inboundKeys).partial().optional().describe("Instead of the keys of `inbound`."),
  threadBindings: z
    .strictObject(bindingKeys)
    .partial()
    .optional()
    .describe("Instead of the keys of session.threadBindings."),
};

const telegram = {
  botToken: optionalText.describe("From @BotFather."),
  apiRoot: httpAddress()
    .optional()
    .describe("Of a Bot API server of your own. Default https://api.telegram.org."),
};
const discord = {
  token: optionalText.describe("The bot's, from the developer portal."),
  restUrl: httpAddress().optional().describe("Default https://discord.com/api."),
};
const whatsapp = {
  phoneNumberId: optionalText.describe("Of the number that the account writes from."),
  accessToken: optionalText.describe("A permanent one, of a system user."),
  appSecret: optionalText.describe("Signs the web hooks: without it none is believed."),
  verifyToken: optionalText.describe("A word of your own, given again where the web hook is set up."),
  graphUrl: httpAddress().optional().describe("Default https://graph.facebook.com/v23.0."),
};
const signal = {
  number: optionalText.describe("The account's, like +491701234567."),
  url: httpAddress().optional().describe("Of the signal-cli daemon. Default http://127.0.0.1:8080."),
};
const imessage = {
  command: z
    .array(text)
    .min(1)
    .optional()
    .describe('The program that speaks for Messages. Default ["imsg", "rpc"].'),
  names: z
    .array(text)
    .optional()
    .describe('By these a message in a group names the agent, alone or as @name. Default ["Parley"].'),
  attachmentFolders: z
    .array(text.regex(/^(?:~?\/|~$)/, "must begin with / or ~/"))
    .optional()
    .describe("Files of messages are read below these only. Default: Messages' own, below ~/Library."),
};

const ACCOUNT = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/** A channel: one account by its own keys, others by name below `accounts`. */
function channel<T extends z.ZodRawShape>(own: T) {
  const account = z.strictObject({ ...common, ...own });
  return account
    .extend({
      accounts: z
        .record(z.string().regex(ACCOUNT, "must be 1 to 32 of a-z, 0-9, _ and -"), account)
        .optional()
        .describe("Further accounts by name; what one does not say, the channel's own keys do."),
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
    webchat: z.strictObject({}).optional().describe("Always there; it has no keys."),
  })
  .prefault({});
