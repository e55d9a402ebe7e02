// The command `parley acp`.

import { type Commands, flag, option, program } from "../../cli/row.ts";

export const ACP: Commands = {
  acp: program({
    summary: "Serve sessions to an editor over standard input and output (Agent Client Protocol)",
    options: {
      session: option("<session>", "Open this session instead of new ones", { conflicts: "agent" }),
      agent: option("<id>", "Open sessions of this agent (default: the default agent)"),
      setup: flag("Set up a model in this terminal, for an editor that asks for the sign-in"),
    },
    load: async () => (await import("./editor/command.ts")).runAcp,
  }),
};
