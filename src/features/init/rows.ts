// The command of the first setup.

import { type Commands, flag, option, program } from "../../cli/row.ts";

export const INIT: Commands = {
  init: program({
    summary: "Set up a model, a service and a channel, and write the configuration file",
    options: {
      provider: option("<name>", "Use this model provider, like anthropic, ollama, server or offline"),
      baseUrl: option("<url>", "Use this address of the provider's API, up to its version"),
      keyEnv: option("<name>", "Read the key from this environment variable"),
      model: option("<id>", "Use this model (default: ask, or the provider's first)"),
      noTest: flag("Do not test the model and the channel first"),
      service: flag("Install the service"),
      noService: flag("Do not install the service"),
      channel: option("<channel>", "Set up this channel (none: no channel)"),
      set: option("<key=value...>", "Give these values of the channel"),
      yes: flag("Ask nothing: use what was found, and replace an existing file (a copy is kept)"),
    },
    load: async () => (await import("./command.ts")).runInit,
  }),
};
