// The commands about recorded chains.

import { amount, type Commands, option, program, repeated, withDefault } from "../../cli/row.ts";

export const REPLAY: Commands = {
  replay: program({
    summary: "Run a chain again from its record, and name the first difference",
    args: { "[chain]": "Id of the chain (default: the newest)" },
    options: {
      file: option("<record>", "Use the record in this file", { conflicts: "save" }),
      save: option("<file>", "Also write the record to this new file"),
      model: option("<model>", "Really call this model instead of the recorded ones"),
      agent: repeated("<agent.model=model>", "Really call this model for one agent"),
      from: option("<step>", "Really call models from this step on (number or message id)"),
      change: option("<file>", "Change instructions, settings or the first message as this JSON file says"),
      live: option("<tools>", "Really run these tools (names with commas)"),
      repeat: amount("<n>", "Replay this many times", 1),
      out: option("<file>", "Write the record of the replay to this new file"),
    },
    load: async () => (await import("./commands/replay.ts")).replayChain,
  }),
  diff: program({
    summary: "Compare two chains step by step",
    args: { "<a>": "Id of a chain, or file of its record", "<b>": "The chain to compare it with" },
    load: async () => (await import("./commands/diff.ts")).diffRecords,
  }),
  eval: {
    summary: "Check recorded chains with other models or instructions",
    commands: {
      run: program({
        summary: "Replay all cases with all variants, and check the expectations",
        isDefault: true,
        args: { "<file>": "File with cases and variants" },
        options: {
          change: repeated("<file>", "Add a variant with this change (see npx parley-gateway replay)"),
          junit: option("<file>", "Also write the outcomes as JUnit XML"),
          html: option("<file>", "Also write the outcomes as an HTML page"),
        },
        load: async () => (await import("./commands/eval.ts")).runEvaluation,
      }),
      add: program({
        summary: "Add recorded chains to the cases",
        args: { "[chain]": "Id of the chain (default: the newest)" },
        options: {
          to: withDefault(option("<file>", "File of the cases"), "eval.json"),
          newest: withDefault(amount("<n>", "Add this many of the newest chains", 1), 1),
        },
        load: async () => (await import("./commands/eval.ts")).addCases,
      }),
    },
  },
};
