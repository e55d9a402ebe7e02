// The setup guide of each channel: steps at the platform, questions to the user, and next steps.

import { FACTS } from "../../config/schema/setting.ts";
import type { AnswerForm } from "../../core/account-answer.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { PLATFORMS } from "../../features.ts";

/** A question to the user, for a key of the account. */
interface Question {
  readonly ask: string;
  /** The form of an answer, and the text for another one. Default: it is not empty and has no spaces. */
  readonly form?: AnswerForm;
}

/** The setup of an account, as a platform declares it. */
export interface Guide {
  readonly title: string;
  /** Instructions for the platform, shown before the questions. */
  readonly first: readonly string[];
  /** By key in the configuration of the account. */
  readonly questions: Readonly<Record<string, Question>>;
  /** Instructions shown after the account was added. `{account}` stands for the account's name. */
  readonly afterwards?: readonly string[];
  /** The instruction by which the user gets a code, and approves it. */
  readonly firstContact?: string;
}

/** The guides, in the order in which people see them. */
export const GUIDES = Object.entries(PLATFORMS).map(([channel, { guide, settings }]) => ({
  ...guide,
  channel,
  afterwards: [
    ...(guide.afterwards ?? []),
    ...(guide.firstContact
      ? [`${guide.firstContact} Then run: npx parley-gateway channels pair approve CODE`]
      : []),
  ],
  /** The channel's page in docs/. */
  page: `${channel.toUpperCase()}.md`,
  questions: Object.entries(guide.questions).map(([key, { ask, form }]) => ({
    key,
    ask,
    form,
    /** True if the input is hidden while the user types. */
    secret: settings[key]?.[FACTS]?.shown === "secret",
  })),
}));

export type ChannelGuide = (typeof GUIDES)[number];

/** The channels as a person chooses one of them. */
export const CHOICES = GUIDES.map(({ channel, title }) => ({ value: channel, label: title }));

export function findGuide(name: string): Result<ChannelGuide> {
  const guide = GUIDES.find(({ channel }) => channel === name);
  const list = Object.keys(PLATFORMS).join(", ");
  return guide
    ? ok(guide)
    : fail("channel_unknown", `unknown channel ${quoted(name, 40)}; channels: ${list}`);
}
