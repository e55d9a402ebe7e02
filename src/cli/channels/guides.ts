// Owns what has to be known to set a channel up: where its secrets come from, what is asked, what comes next.

import type { ChannelId } from "../../core/channel-settings.ts";

interface Question {
  /** The key of the configuration. */
  readonly key: string;
  readonly ask: string;
  /** Not shown while it is typed. */
  readonly secret: boolean;
  /** In words, what is wrong with a value; undefined: nothing that can be seen. */
  check(value: string): string | undefined;
}

export interface Guide {
  readonly title: string;
  /** What has to be done elsewhere first, a step each. */
  readonly first: readonly string[];
  readonly questions: readonly Question[];
  /** What has to be done elsewhere afterwards. `{account}` is the account's name. */
  readonly afterwards: readonly string[];
  /** Its page in docs/. */
  readonly page: string;
}

const form =
  (pattern: RegExp, words: string) =>
  (value: string): string | undefined =>
    pattern.test(value) ? undefined : words;

const something = form(/^\S+$/, "It must not be empty or hold blanks.");

export const GUIDES: Readonly<Record<ChannelId, Guide>> = {
  telegram: {
    title: "Telegram",
    first: ["Write to @BotFather on Telegram: /newbot. It asks for a name and gives a token."],
    questions: [
      {
        ...{ key: "botToken", ask: "The bot's token", secret: true },
        check: form(/^\d+:[\w-]{20,}$/, "A token looks like 123456789:AAF… (from @BotFather)."),
      },
    ],
    afterwards: ["Write anything to the bot. It answers with a code: parley channels pair approve CODE"],
    page: "TELEGRAM.md",
  },
  discord: {
    title: "Discord",
    first: [
      "At discord.com/developers/applications: New Application, then Bot, Reset Token.",
      "On the same page switch on the Message Content Intent.",
      "Under OAuth2, URL Generator: scopes bot and applications.commands; open the address to invite it.",
    ],
    questions: [{ key: "token", ask: "The bot's token", secret: true, check: something }],
    afterwards: ["Write the bot a direct message. It answers with a code: parley channels pair approve CODE"],
    page: "DISCORD.md",
  },
  whatsapp: {
    title: "WhatsApp (Cloud API)",
    first: [
      "At developers.facebook.com: an app with the product WhatsApp, and a phone number in it.",
      "A system user's token that does not expire, with whatsapp_business_messaging.",
    ],
    questions: [
      {
        ...{ key: "phoneNumberId", ask: "Phone number ID (not the number)", secret: false },
        check: form(/^\d{5,20}$/, "The ID is a number of 5 to 20 digits."),
      },
      { key: "accessToken", ask: "The access token", secret: true, check: something },
      { key: "appSecret", ask: "The app's secret (App settings, Basic)", secret: true, check: something },
      {
        key: "verifyToken",
        ask: "A word of your own, to verify the web hook with",
        secret: true,
        check: something,
      },
    ],
    afterwards: [
      "Give Meta the web hook https://<your address>/channels/whatsapp/{account} and the same word.",
      "Subscribe it to messages.",
    ],
    page: "WHATSAPP.md",
  },
  signal: {
    title: "Signal",
    first: [
      "Install signal-cli and register or link a number with it.",
      "Let it run: signal-cli daemon --http 127.0.0.1:8080",
    ],
    questions: [
      {
        ...{ key: "number", ask: "The number, like +491701234567", secret: false },
        check: form(/^\+\d{5,20}$/, "A number begins with + and the country's code, and has digits only."),
      },
    ],
    afterwards: ["Write a message to the number. It answers with a code: parley channels pair approve CODE"],
    page: "SIGNAL.md",
  },
  imessage: {
    title: "iMessage",
    first: ["On a Mac that is signed in to Messages: install imsg, and let it read the disk and send."],
    questions: [],
    afterwards: [
      "Write a message to that account. It answers with a code: parley channels pair approve CODE",
    ],
    page: "IMESSAGE.md",
  },
};

/** A value that is taken from the environment at each start. */
export const FROM_ENVIRONMENT = /^\$\{[A-Za-z_]\w*\}$/;

/** What is wrong with an answer, in words. */
export function checkAnswer(question: Guide["questions"][number], value: string): string | undefined {
  return FROM_ENVIRONMENT.test(value) ? undefined : question.check(value);
}
