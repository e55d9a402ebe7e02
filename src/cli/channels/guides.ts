// The setup guide of each channel: steps at the platform, questions to the user, and next steps.

import type { ChannelId } from "../../core/shapes/settings/channels.ts";

const APPROVE = "Then run: npx parley-gateway channels pair approve CODE";

interface Question {
  /** Key in the configuration of the account. */
  readonly key: string;
  readonly ask: string;
  /** True if the input is hidden while the user types. */
  readonly secret: boolean;
  /** Returns an error text for an invalid value, or undefined for a valid one. */
  check(value: string): string | undefined;
}

export interface Guide {
  readonly title: string;
  /** Instructions for the platform, shown before the questions. */
  readonly first: readonly string[];
  readonly questions: readonly Question[];
  /** Instructions shown after the account was added. `{account}` stands for the account's name. */
  readonly afterwards: readonly string[];
  /** The channel's page in docs/. */
  readonly page: string;
}

const form =
  (pattern: RegExp, words: string) =>
  (value: string): string | undefined =>
    pattern.test(value) ? undefined : words;

const nonEmpty = form(/^\S+$/, "The value must not be empty or contain spaces.");

export const GUIDES: Readonly<Record<ChannelId, Guide>> = {
  telegram: {
    title: "Telegram",
    first: ["Send /newbot to @BotFather on Telegram. It asks for a name and returns a token."],
    questions: [
      {
        key: "botToken",
        ask: "The bot's token",
        secret: true,
        check: form(/^\d+:[\w-]{20,}$/, "A token looks like 123456789:AAF… (from @BotFather)."),
      },
    ],
    afterwards: [`Send the bot a message. It answers with a code. ${APPROVE}`],
    page: "TELEGRAM.md",
  },
  discord: {
    title: "Discord",
    first: [
      "At discord.com/developers/applications: New Application, then Bot, Reset Token.",
      "On the same page switch on the Message Content Intent.",
      "Under OAuth2, URL Generator: scopes bot and applications.commands; open the address to invite it.",
    ],
    questions: [{ key: "token", ask: "The bot's token", secret: true, check: nonEmpty }],
    afterwards: [`Send the bot a direct message. It answers with a code. ${APPROVE}`],
    page: "DISCORD.md",
  },
  whatsapp: {
    title: "WhatsApp (Cloud API)",
    first: [
      "At developers.facebook.com, create an app with the product WhatsApp and add a phone number.",
      "Create a system user's token with whatsapp_business_messaging that does not expire.",
    ],
    questions: [
      {
        key: "phoneNumberId",
        ask: "Phone number ID (not the number)",
        secret: false,
        check: form(/^\d{5,20}$/, "The ID is a number of 5 to 20 digits."),
      },
      { key: "accessToken", ask: "The access token", secret: true, check: nonEmpty },
      { key: "appSecret", ask: "The app's secret (App settings, Basic)", secret: true, check: nonEmpty },
      {
        key: "verifyToken",
        ask: "A verify token for the web hook (choose one)",
        secret: true,
        check: nonEmpty,
      },
    ],
    afterwards: [
      "At Meta, set the web hook https://<your address>/channels/whatsapp/{account} and the verify token.",
      "Subscribe it to messages.",
    ],
    page: "WHATSAPP.md",
  },
  signal: {
    title: "Signal",
    first: [
      "Install signal-cli and register or link a number with it.",
      "Start its daemon: signal-cli daemon --http 127.0.0.1:8080",
    ],
    questions: [
      {
        key: "number",
        ask: "The number, like +491701234567",
        secret: false,
        check: form(/^\+\d{5,20}$/, "A number is + and the country code, followed by digits only."),
      },
    ],
    afterwards: [`Send a message to the number. The answer has a code. ${APPROVE}`],
    page: "SIGNAL.md",
  },
  imessage: {
    title: "iMessage",
    first: [
      "On a Mac that is signed in to Messages, install imsg and grant the permissions in docs/IMESSAGE.md.",
    ],
    questions: [],
    afterwards: [`Send a message to that account. The answer has a code. ${APPROVE}`],
    page: "IMESSAGE.md",
  },
};

/** Matches a value like `${NAME}`, which is read from the environment at each start. */
export const FROM_ENVIRONMENT = /^\$\{[A-Za-z_]\w*\}$/;

/** Returns an error text for an invalid answer, or undefined for a valid one. */
export function checkAnswer(question: Guide["questions"][number], value: string): string | undefined {
  return FROM_ENVIRONMENT.test(value) ? undefined : question.check(value);
}
