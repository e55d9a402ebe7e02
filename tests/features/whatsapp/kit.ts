// A WhatsApp number on a real gateway. The fake platform posts web hooks to the gateway.

import type { Channel, ChannelHost, InboundMessage } from "../../../src/channels/channel.ts";
import { openChannel } from "../../../src/channels/registry.ts";
import type { Route } from "../../../src/core/shapes/session.ts";
import type { WhatsAppAccount } from "../../../src/features/whatsapp/whatsapp.ts";
import { type HostParts, recordingHost } from "../../contract/channel.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import {
  ACCESS_TOKEN,
  APP_SECRET,
  OUR_NUMBER,
  PHONE_NUMBER_ID,
  startWhatsApp,
  VERIFY_TOKEN,
  type WhatsAppServer,
  webHook,
} from "../../kit/platforms/whatsapp-server.ts";

export const PERSON = "16505551234";
export const GROUP = "Y2FwaV9ncm91cDoxOTUwNTU1MDA3OToxMjAzNjMzOTQzMjAdOTY0MTUZD";

export function whatsAppAccount(graphUrl: string, more: Partial<WhatsAppAccount> = {}): WhatsAppAccount {
  return {
    accountId: "default",
    dmPolicy: "open",
    allowFrom: ["*"],
    groupPolicy: "open",
    groupAllowFrom: [],
    requireMention: true,
    groups: {},
    inbound: { debounceMs: 0, queue: "followup", mediaMaxBytes: 1024 * 1024 },
    threadBindings: { enabled: true, idleHours: 0, maxAgeHours: 0 },
    channel: "whatsapp",
    phoneNumberId: PHONE_NUMBER_ID,
    accessToken: ACCESS_TOKEN,
    appSecret: APP_SECRET,
    verifyToken: VERIFY_TOKEN,
    graphUrl,
    ...more,
  };
}

export interface Ground {
  readonly server: WhatsAppServer;
  readonly channel: Channel;
  readonly host: ChannelHost & Pick<HostParts, "received" | "failing">;
  readonly house: House;
  /** The URL of the web hook. */
  readonly hookUrl: string;
  /** Posts a person's messages, or another `value` of a web hook. */
  post(value: object): Promise<number[]>;
  /** Posts one message, and returns the message that the host received. */
  hear(message: object, contacts?: readonly object[]): Promise<InboundMessage | undefined>;
}

let messages = 0;

/** Returns a message with these fields in addition to the common ones. */
export function message(fields: object): object {
  messages += 1;
  return { from: PERSON, id: `wamid.in${messages}`, timestamp: "1749416383", ...fields };
}

export const said = (body: string, more: object = {}): object =>
  message({ type: "text", text: { body }, ...more });

export const CONTACT = { profile: { name: "Sheena Nelson" }, wa_id: PERSON };

export async function openGround(
  given?: HostParts,
  accounts: readonly Partial<WhatsAppAccount>[] = [{}],
): Promise<Ground> {
  const host = given ?? recordingHost();
  const server = await startWhatsApp();
  const settings = accounts.map((account) => whatsAppAccount(server.graphUrl, account));
  const channel = await openChannel("whatsapp", settings, host);
  const house = await openHouse({ channels: [channel], world: host.world });
  const hookUrl = `${house.http}/channels/whatsapp/default`;
  const post = (value: object): Promise<number[]> => server.post(hookUrl, webHook(value));
  return {
    ...{ server, channel, host, house, hookUrl, post },
    async hear(one, contacts = [CONTACT]) {
      const before = host.received.length;
      await post({ contacts, messages: [one] });
      return host.received[before];
    },
  };
}

export const direct: Route = { channel: "whatsapp", accountId: "default", to: PERSON };
export const inGroup: Route = { channel: "whatsapp", accountId: "default", to: GROUP };

let deliveries = 0;

/** Sends a text in the same way as the outbox. */
export function send(channel: Channel, text: string, route: Route = direct) {
  deliveries += 1;
  const ids = { deliveryId: `delivery-${deliveries}`, sessionKey: "agent:main:main" };
  return channel.deliver({ ...ids, route, text, part: 1, parts: 1 });
}

export const MENTION = `@${OUR_NUMBER}`;
