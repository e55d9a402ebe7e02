// Defines the settings of notifications.

import { address, choice, flag, list, object, secret, section, text } from "../../config/schema/setting.ts";

/** The kinds of news for a device. */
export const NEEDS = ["permission", "failure", "question"] as const;
/** The amount of text that is sent to an ntfy server, which can read it. */
const DETAILS = ["title", "full"] as const;

const ntfy = object({
  url: address("Address of the ntfy server, like https://ntfy.sh.", { required: true }),
  topic: secret("Topic. Without a token, its name is the only secret, so it must be hard to guess.", {
    pattern: [/^[\w-]{1,64}$/, "must be 1 to 64 letters, digits, _ and -"],
    required: true,
  }),
  token: secret("Access token of the ntfy server.", {}),
  detail: choice(DETAILS, "title: the kind of the need and the agent. full: also commands and errors.", {
    default: "title",
  }),
  allow: flag(
    "Whether a command that is shown whole has the button Allow, for everybody who reads the topic.",
    {
      default: false,
    },
  ),
});

export const PUSH_SETTINGS = section({
  needs: list(choice(NEEDS), "Kinds of news for which there are notifications.", { default: NEEDS }),
  url: address("Address of the gateway for phones: ntfy's buttons and links lead there."),
  services: list(
    address(""),
    "Push services of browsers that are in your network, by origin. Others must be public, with https.",
    { default: [] },
  ),
  contact: text("Address at which operators of push services reach you.", {
    pattern: [/^(mailto:[^@\s]+@[^@\s]+|https:\/\/\S+)$/, "must be a mailto: or https: address"],
    default: "https://parley-gateway.github.io/parley/",
  }),
  ntfy,
});
