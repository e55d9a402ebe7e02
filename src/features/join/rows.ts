// The commands for joined programs and other MCP clients.

import {
  amount,
  asks,
  type Commands,
  checked,
  choice,
  flag,
  linked,
  option,
  program,
  withDefault,
} from "../../cli/row.ts";
import { PROGRAMS, WAKES } from "./words.ts";

const PROGRAM = { "<program>": { text: "Coding agent", choices: PROGRAMS } };
const SERVER = { "<server>": "Name of the server" };
const YES = { yes: flag("Change the configuration without asking") };

export const JOIN: Commands = {
  mcp: {
    summary: "Serve the session tools to MCP clients, and sign in at MCP servers",
    commands: {
      serve: program({
        isDefault: true,
        summary: "Serve the session tools to an MCP client over standard input and output",
        options: {
          session: option("<session>", "Act as this session (default: an external session for this client)", {
            conflicts: ["handle", "agent"],
          }),
          joined: option("<handle>", "Serve a new window of this joined program"),
          plugin: choice(
            "<program>",
            "Serve a new window for this program's plugin, and join if needed",
            PROGRAMS,
          ),
          handle: option(
            "<name>",
            "Return to the external session with this name (default: the client's name)",
          ),
          agent: option("<id>", "Create the external session for this agent (default: the default agent)"),
        },
        load: async () => (await import("./mcp/command.ts")).runMcp,
      }),
      login: linked({
        summary: "Sign in at an MCP server of tools.mcp.servers, in a browser of this computer",
        args: SERVER,
        options: {
          port: amount("<n>", "Port to which the browser comes back (default: a free one)", 1),
        },
        work: async (cli, link, input) => (await import("./mcp/login.ts")).login(cli, link, input),
      }),
      logout: asks({
        summary: "Forget the tokens of an MCP server",
        args: SERVER,
        ask: (link, { server }) => link.request("servers.logout", { name: server }),
        print: (cli, { forgotten }, _, { server }) =>
          cli.say(forgotten ? `signed out of ${server}` : `nobody was signed in at ${server}`),
      }),
    },
  },
  join: program({
    summary: "Make each window of a coding agent in this folder a session that messages can wake",
    args: PROGRAM,
    options: {
      session: option("<name>", "Name of the session (default: from the program and the folder)"),
      wake: choice(
        "<how>",
        "When a message arrives for an idle window, notify you, or also continue the window's conversation",
        WAKES,
      ),
      notify: checked(
        "<place>",
        "Chat that gets a notice of waiting messages, like telegram:123",
        "like telegram:123",
        (given) => (/^[a-z]+:.+$/.test(given) ? given : undefined),
      ),
      ...YES,
    },
    load: async () => (await import("./commands.ts")).joinProgram,
  }),
  leave: program({
    summary: 'Undo "npx parley-gateway join" in this folder',
    args: PROGRAM,
    options: YES,
    load: async () => (await import("./commands.ts")).leaveProgram,
  }),
  inbox: program({
    summary: "List sessions by state: needs you, running, waiting, failed, done",
    options: {
      limit: withDefault(amount("<n>", "Print at most this many items of each group", 1), 20),
      hook: choice("<program>", "Run as the hook of this joined program: print new messages", PROGRAMS),
      joined: option(
        "<handle>",
        "Name under which the program of the hook or the window has joined (default: by its plugin)",
      ),
      window: amount("<n>", "Wake this window of a joined program when a message waits", 1),
    },
    load: async () => (await import("./hook.ts")).showInbox,
  }),
};
