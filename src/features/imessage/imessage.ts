// Adds the channel `imessage`: Messages on this Mac, over the program `imsg rpc`.

import type { PlatformCode } from "../../channels/platform.ts";
import { list, text } from "../../config/schema/setting.ts";
import type { PlatformSettings } from "../../core/shapes/settings/channels.ts";
import { feature } from "../../feature.ts";

const KEYS = {
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
};

export type IMessageAccount = PlatformSettings<typeof KEYS>;

export const imessage = feature({
  name: "imessage",
  channel: {
    settings: KEYS,
    definedBy: ["command", "enabled"],
    // The Messages app would accept longer texts, but people prefer shorter ones.
    textMaxChars: 4_000,
    guide: {
      title: "iMessage",
      first: [
        "On a Mac that is signed in to Messages, install imsg and grant the permissions in docs/IMESSAGE.md.",
      ],
      questions: {},
      firstContact: "Send a message to that account. The answer has a code.",
    },
    load: (): Promise<PlatformCode> => import("./channel.ts"),
  },
});
