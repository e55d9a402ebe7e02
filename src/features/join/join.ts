// Adds coding agents and other MCP clients whose windows are sessions.

import { choice, section, text } from "../../config/schema/setting.ts";
import { feature, type LoadedBy } from "../../feature.ts";
import { WAKES } from "./words.ts";

export const join = feature({
  name: "join",
  settings: {
    joined: section({
      wake: choice(
        WAKES,
        "For a message to a window that cannot be woken: `notify` tells you; `resume` also continues the " +
          "conversation without a window, as your user. `npx parley-gateway join --wake` overrides it.",
        { default: "notify" },
      ),
      notify: text(
        "Chat that gets notices, like telegram:123. Default: the desktop, else the first of commands.owners.",
        { pattern: [/^[a-z]+:.+$/, "must be like telegram:123"] },
      ),
    }),
  },
  commands: async (): LoadedBy<"commands"> => (await import("./rows.ts")).JOIN,
  commandWords: { inbox: "attention todo pending", mcp: "tools" },
});
