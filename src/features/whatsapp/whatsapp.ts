// Adds the channel `whatsapp`: phone numbers at the Cloud API.

import type { PlatformCode } from "../../channels/platform.ts";
import { address, optionalText } from "../../config/schema/setting.ts";
import type { PlatformSettings } from "../../core/shapes/settings/channels.ts";
import { feature } from "../../feature.ts";

const KEYS = {
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
};

export type WhatsAppAccount = PlatformSettings<typeof KEYS>;

export const whatsapp = feature({
  name: "whatsapp",
  channel: {
    settings: KEYS,
    // Below the platform's limit of 4,096, because marks and written-out URLs need space.
    textMaxChars: 4_000,
    sendsFiles: true,
    guide: {
      title: "WhatsApp (Cloud API)",
      first: [
        "At developers.facebook.com, create an app with the product WhatsApp and add a phone number.",
        "Create a system user's token with whatsapp_business_messaging that does not expire.",
      ],
      questions: {
        phoneNumberId: {
          ask: "Phone number ID (not the number)",
          form: [/^\d{5,20}$/, "The ID is a number of 5 to 20 digits."],
        },
        accessToken: { ask: "The access token" },
        appSecret: { ask: "The app's secret (App settings, Basic)" },
        verifyToken: { ask: "A verify token for the web hook (choose one)" },
      },
      afterwards: [
        "At Meta, set the web hook https://<your address>/channels/whatsapp/{account} and the verify token.",
        "Subscribe it to messages.",
      ],
    },
    load: (): Promise<PlatformCode> => import("./channel.ts"),
  },
});
