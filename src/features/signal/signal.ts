// Adds the channel `signal`: numbers, over a signal-cli daemon.

import type { PlatformCode } from "../../channels/platform.ts";
import { address, optionalText } from "../../config/schema/setting.ts";
import type { PlatformSettings } from "../../core/shapes/settings/channels.ts";
import { feature } from "../../feature.ts";

/**
 * Maximum length of a text. Signal turns a longer text into an attachment, which some devices do not show as
 * text.
 */
export const TEXT_MAX_CHARS = 2_000;

const KEYS = {
  number: optionalText("Number of the account, for example +491701234567.", {
    shown: "show",
    required: true,
  }),
  url: address("URL of the signal-cli daemon. Default http://127.0.0.1:8080.", {
    default: "http://127.0.0.1:8080",
  }),
};

export type SignalAccount = PlatformSettings<typeof KEYS>;

export const signal = feature({
  name: "signal",
  channel: {
    settings: KEYS,
    textMaxChars: TEXT_MAX_CHARS,
    sendsFiles: true,
    guide: {
      title: "Signal",
      first: [
        "Install signal-cli and register or link a number with it.",
        "Start its daemon: signal-cli daemon --http 127.0.0.1:8080",
      ],
      questions: {
        number: {
          ask: "The number, like +491701234567",
          form: [/^\+\d{5,20}$/, "A number is + and the country code, followed by digits only."],
        },
      },
      firstContact: "Send a message to the number. The answer has a code.",
    },
    load: (): Promise<PlatformCode> => import("./channel.ts"),
  },
});
