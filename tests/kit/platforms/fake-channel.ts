// A channel without a platform. A test sends people's messages, and reads the texts that the gateway
// delivers.

import type {
  Channel,
  DeliveryOutcome,
  InboundMedia,
  InboundMessage,
  OutgoingMessage,
} from "../../../src/channels/channel.ts";
import { optional } from "../../../src/core/optional.ts";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import type { Route } from "../../../src/core/shapes/route.ts";
import type { AccountSettings } from "../../../src/core/shapes/settings/channels.ts";
import { OPEN_ACCOUNT } from "./open-account.ts";

export interface FakeChannel extends Channel {
  readonly shown: OutgoingMessage[];
  readonly typed: Route[];
  /** Returns the outcome of further delivery attempts. Default: sent. */
  outcome: (message: OutgoingMessage) => DeliveryOutcome;
  /** Returns the texts delivered to a chat, in order. */
  textsAt(to: string): string[];
}

export function fakeChannel(): FakeChannel {
  const shown: OutgoingMessage[] = [];
  const typed: Route[] = [];
  const channel: FakeChannel = {
    id: "telegram",
    deduplicates: true,
    shown,
    typed,
    outcome: () => ({ kind: "sent" }),
    textsAt: (to) => shown.filter(({ route }) => route.to === to).map(({ text }) => text),
    async deliver(message) {
      const outcome = channel.outcome(message);
      if (outcome.kind === "sent") shown.push(message);
      return outcome;
    },
    async typing(route) {
      typed.push(route);
    },
  };
  return channel;
}

const BOT = { channel: "telegram", botToken: "1:secret", apiRoot: "http://127.0.0.1:1" };
type Bot = AccountSettings & typeof BOT;

/** Returns settings of an account that answers everybody immediately. */
export function openAccount(more: Partial<Bot> = {}): Bot {
  return { ...OPEN_ACCOUNT, ...BOT, ...more };
}

let messages = 0;

type Said = Partial<Omit<InboundMessage, "chat" | "sender">> & {
  readonly chat?: Partial<InboundMessage["chat"]>;
  readonly from?: string;
  readonly name?: string;
};

/** Returns a person's message, by default one from Ada in her direct chat. */
export function said(text: string, { chat, from = "7", name = "Ada", ...more }: Said = {}): InboundMessage {
  messages += 1;
  const id = chat?.id ?? from;
  const thread = chat?.thread;
  return {
    channel: "telegram",
    accountId: "default",
    messageId: `m${messages}`,
    chat: { type: "direct", ...chat, id },
    sender: { id: from, name },
    text,
    mentioned: false,
    media: [],
    sentAt: 1_767_225_600_000,
    replyTo: {
      channel: "telegram",
      to: id,
      accountId: "default",
      ...optional({ threadId: thread?.id }),
    },
    ...more,
  };
}

/** Returns a message in a group. It mentions the agent. */
export function saidInGroup(text: string, more: Said = {}): InboundMessage {
  return said(text, {
    mentioned: true,
    ...more,
    chat: { type: "group", id: "-100", name: "Lunch", ...more.chat },
  });
}

/** Returns a file in the form in which a platform reports it in a message. */
export function offered(bytes: Uint8Array, more: Partial<InboundMedia> = {}): InboundMedia {
  return {
    kind: "file",
    bytes: bytes.length,
    async load(maxBytes) {
      return bytes.length > maxBytes ? fail("too_large", "it is too large") : ok(bytes);
    },
    ...more,
  };
}
