// The command `parley acp`.

import { type Commands, option, program } from "../../cli/row.ts";

export const ACP: Commands = {
  acp: program({
    summary: "Serve sessions to an editor over standard input and output (Agent Client Protocol)",
    options: {
      session: option("<session>", "Open this session instead of new ones", { conflicts: "agent" }),
      agent: option("<id>", "Open sessions of this agent (default: the default agent)"),
    },
    load: async () => (await import("./editor/command.ts")).runAcp,
  }),
};
