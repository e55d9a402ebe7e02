// Commands that are programs of their own. Their code is loaded when they run.

import { LOG_LEVELS } from "../../core/shapes/settings/logging.ts";
import {
  amount,
  type Commands,
  checked,
  choice,
  flag,
  option,
  program,
  required,
  withDefault,
} from "../row.ts";
import { routeOptions } from "./channels.ts";

const OPEN_SIMILAR = "open it if there is none, although a similar name exists";

export const CHAT = program({
  summary: "Chat with an agent in the terminal",
  options: {
    session: option("<session>", "Use this session (default: the main session of the default agent)"),
    new: flag(`Start a new session; with --session, ${OPEN_SIMILAR}`),
    plain: flag("Print line by line instead of drawing (default if there is no terminal)"),
  },
  load: async () => (await import("../commands/chat.ts")).runChat,
});

export const SEND = program({
  summary: "Send a message to a session, or a text to a chat of a channel",
  args: { "<message>": "" },
  options: {
    session: option(
      "<session>",
      "Send to this session (with --channel: only record the text in this session)",
    ),
    new: flag(`With --session, ${OPEN_SIMILAR}`),
    ...routeOptions("Send the text to a chat of this channel, without a run"),
    to: option("<chat>", "Send to this chat of --channel"),
    wait: amount("<seconds>", "Wait at most this long for the reply and print it", 0),
  },
  load: async () => (await import("../commands/send.ts")).runSend,
});

export const RUN = program({
  summary: "Ask an agent one question and print the answer (--json: each event as a line)",
  args: { "<question>": "Question to the agent (-: read it from standard input)" },
  options: {
    session: option("<session>", "Ask in this session (default: a new one)", { conflicts: "agent" }),
    new: flag(`With --session, ${OPEN_SIMILAR}`),
    agent: option("<id>", "Ask this agent (default: the default agent)"),
    timeout: amount("<seconds>", "Stop the run after this time (default: none)", 0.001),
  },
  load: async () => (await import("../commands/run.ts")).runQuestion,
});

export const GATEWAY = program({
  summary: "Start the gateway in this terminal",
  options: {
    port: checked(
      "<n>",
      "Listen on this port instead of the configured one; 0: any free port",
      "a number from 0 to 65535",
      (text) => (/^\d+$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
    ),
    host: option("<address>", "Listen on this address instead of the configured one"),
  },
  load: async () => (await import("../commands/gateway/gateway.ts")).runGateway,
});

export const STATUS = program({
  summary: "Show what the gateway does and what needs you, on one screen",
  load: async () => (await import("../commands/gateway/status.ts")).showStatus,
});

export const LOGS = program({
  summary: "Show the newest lines of the gateway's log",
  options: {
    follow: flag("Keep printing new lines, also after a restart of the gateway", { short: "-f" }),
    level: choice(
      "<level>",
      "Show only this level and higher ones",
      LOG_LEVELS.filter((level) => level !== "silent"),
    ),
    part: option("<part...>", "Show only lines of these parts of the program, like engine or channels"),
    run: option("<id>", "Show only lines about this run"),
    limit: withDefault(amount("<n>", "Begin with at most this many lines", 1), 50),
  },
  load: async () => (await import("../commands/gateway/logs.ts")).showLogs,
});

export const MODELS = program({
  summary: "List the configured models and the sources of their keys",
  options: { test: flag("Also call the models that agents use (each call costs a few tokens)") },
  load: async () => (await import("../commands/gateway/models.ts")).listModels,
});

export const LINK = program({
  summary: "Print the link that opens the page and signs in",
  load: async () => (await import("../commands/gateway/link.ts")).printLink,
});

const FILE = { "<file>": "" };

export const STORE: Commands = {
  show: program({
    summary: "Show the location and contents of the store, and the gateways that use it",
    isDefault: true,
    load: async () => (await import("../commands/gateway/store.ts")).showStore,
  }),
  migrate: program({
    summary: "Migrate the embedded store to an empty PostgreSQL database",
    options: {
      to: required(
        "<url>",
        "Copy to this database: postgresql://user:password@host:5432/database, optionally with ?schema=name",
      ),
    },
    load: async () => (await import("../commands/gateway/store.ts")).migrateStore,
  }),
  backup: program({
    summary: "Back up the store to a new file",
    args: FILE,
    load: async () => (await import("../commands/gateway/store.ts")).backupStore,
  }),
  restore: program({
    summary: "Restore a backup into an empty store",
    args: FILE,
    options: {
      accept: option(
        "<kinds>",
        "Also restore rights: all, or some of rules,nodes,peers,people,jobs,memory,tokens,keys " +
          "(default: ask)",
      ),
    },
    load: async () => (await import("../commands/gateway/store.ts")).restoreStore,
  }),
  recover: program({
    summary: "Rebuild a damaged embedded store from its readable rows and its newest backup",
    load: async () => (await import("../commands/gateway/store.ts")).recoverStore,
  }),
};

export const CONFIG: Commands = {
  check: program({
    summary: "Check the configuration file and summarize it",
    load: async () => (await import("../commands/config/check.ts")).checkConfig,
  }),
  get: program({
    summary: "Print a setting of the file, without secrets",
    args: { "[path]": "Setting, like session.queueMax (default: the whole file)" },
    load: async () => (await import("../commands/config/values.ts")).getConfig,
  }),
  set: program({
    summary: "Change a setting of the file, and keep its comments",
    args: {
      "<path>": "Setting, like agents.list.main.model",
      "[value]": "JSON, or text. - reads standard input",
    },
    options: {
      dryRun: flag("Show the change and its problems, and change nothing"),
      unset: flag("Remove the setting, so that it has its default"),
    },
    load: async () => (await import("../commands/config/values.ts")).setConfig,
  }),
  edit: program({
    summary: "Edit the configuration file in $VISUAL, $EDITOR or vi",
    options: { yes: flag("Save without asking") },
    load: async () => (await import("../commands/config/edit.ts")).editConfig,
  }),
  schema: program({
    summary: "Print the JSON Schema of the configuration file, for completion in an editor",
    options: { write: option("<file>", "Write the schema to this file instead of standard output") },
    load: async () => (await import("../commands/config/schema.ts")).printSchema,
  }),
};

export const DEMO = program({
  summary: "Play a demo with three agents in a temporary directory",
  load: async () => (await import("../commands/demo.ts")).runDemo,
});
