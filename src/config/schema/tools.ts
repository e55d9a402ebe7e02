// Defines the schema of tools and of MCP servers in the configuration file.

import { SENT_FILE_MAX_BYTES } from "../../core/sent-file.ts";
import { APPROVAL_MODES, VISIBILITY_MODES } from "../../core/shapes/settings/settings.ts";
import { toolFilter } from "./agents.ts";
import {
  address,
  choice,
  DAY_SECONDS,
  flag,
  integer,
  list,
  map,
  object,
  optionalText,
  path,
  secret,
  section,
  text,
  texts,
} from "./setting.ts";

/**
 * A name has no `__`, and no `_` at either end. So `mcp__a__b__c` can only mean the tool `b__c` of the server
 * `a`.
 */
const SERVER_NAME = /^(?=.{1,24}$)[a-z0-9]+(?:(?:-+|_)[a-z0-9]+)*$/;

const anyText = text("", { minLength: 0 });

const server = object({
  enabled: flag("False: disabled.", { default: true }),
  command: text("A program that speaks MCP over its standard input and output."),
  args: list(anyText, "Arguments of the program, passed without a shell.", { shown: "count" }),
  env: map(
    text(),
    anyText,
    "Environment of the program, in addition to the gateway's PATH, HOME and a few others.",
  ),
  cwd: text("Working folder of the program. Default: the folder of this file."),
  url: address("Address of a server for MCP over Streamable HTTP, instead of command.", {
    instead: "headers",
  }),
  headers: map(text(), anyText, "HTTP headers that are sent with every request."),
  oauth: object({
    clientId: text(
      "Id of a client that the authorization server knows. Default: the gateway registers itself.",
    ),
    clientSecret: secret("Secret of that client.", {}),
    clientMetadataUrl: address("Address of a client id metadata document, instead of clientId.", {
      instead: "clientSecret",
    }),
    scope: text("Scopes, with spaces between them. Default: those that the server names."),
    authorizationServer: address(
      "Address of the only server that gives tokens; may be private. Required with clientSecret and grant.",
      { instead: "clientSecret" },
    ),
    grant: choice(
      ["client_credentials", "jwt_bearer"],
      "How the gateway signs in without a person. Default: a person signs in.",
    ),
    privateKey: secret("Key in PEM that proves for client_credentials who the client is.", {}),
    tokenFile: path("File with the token for jwt_bearer, such as a workload's JWT. It is read each time."),
    identityProvider: object(
      {
        tokenUrl: address("Address at which it gives tokens; may be private.", {
          instead: "clientSecret",
          required: true,
        }),
        clientId: text("Id of the client to which it gave the ID token in tokenFile.", { required: true }),
        clientSecret: secret("Secret of that client.", {}),
      },
      "Identity provider that exchanges the ID token in tokenFile for one that authorizationServer takes.",
    ),
  }),
  agents: texts("Agents that may use the server, with `*` as a wildcard. Empty: every agent.", {
    default: [],
  }),
  tools: texts("The server's tools that may be used, with `*` as a wildcard. Empty: all.", { default: [] }),
  allowSandboxed: flag(
    "Whether sandboxed sessions may use the server, although it runs outside of every sandbox.",
    { default: false },
  ),
  sampling: flag(
    "Whether the server may ask the model of the calling agent during a call. An owner is asked each time.",
    { default: false },
  ),
  timeoutSeconds: integer(
    "Time limit of a call. A call that exceeds it fails, and the server is asked to cancel it.",
    [1, DAY_SECONDS],
    { default: 60 },
  ),
  startTimeoutSeconds: integer("Time limit of the server's start.", [1, 3_600], { default: 60 }),
});

const mcp = section({
  servers: map(
    text("", {
      pattern: [
        SERVER_NAME,
        "must be 1 to 24 lower-case letters and digits, with - or single _ between them",
      ],
    }),
    server,
    "External MCP servers by name. Their tools are called mcp__<server>__<tool>.",
    { default: {} },
  ),
  waitSeconds: integer(
    "Maximum time that a run waits for servers that are not ready. Then it continues without them.",
    [0, 600],
    { default: 10 },
  ),
  maxResultBytes: integer("Maximum size of one result's text. Longer text is cut.", [1_000, 16 * 1024 ** 2], {
    default: 64 * 1024,
  }),
});

const attachments = section({
  enabled: flag("Whether files may be attached for a sub-agent.", { default: true }),
  maxFiles: integer("Maximum number of files of one spawn.", [1, 1_000], { default: 50 }),
  maxFileBytes: integer("Maximum size of one file, decoded.", [1, 1024 ** 3], { default: 1024 ** 2 }),
  maxTotalBytes: integer("Maximum size of all files of one spawn together, decoded.", [1, 1024 ** 3], {
    default: 5 * 1024 ** 2,
  }),
  retainOnSessionKeep: flag('With cleanup "keep": whether attachments remain until the session is deleted.', {
    default: false,
  }),
});

const filter = section(toolFilter);

export const tools = section({
  ...toolFilter,
  sessions: section({
    visibility: choice(VISIBILITY_MODES, "Sessions that an agent can see.", { default: "tree" }),
  }),
  agentToAgent: section({
    enabled: flag("Whether agents can use sessions of other agents.", { default: false }),
    allow: texts(
      "Agent ids, with `*` as a wildcard. Both the asking and the asked agent must match. Empty: all.",
      { default: [] },
    ),
  }),
  history: section({
    maxTextChars: integer("Maximum characters of a text block in sessions_history.", [100, 1_000_000], {
      default: 4_000,
    }),
    maxBytes: integer("Maximum bytes of a sessions_history result.", [1_000, 16 * 1024 ** 2], {
      default: 80 * 1024,
    }),
  }),
  exec: section({
    timeoutSeconds: integer("Time limit of one command.", [1, DAY_SECONDS], { default: 600 }),
    maxOutputBytes: integer(
      "Maximum bytes of a command's output. Its beginning and its end are kept.",
      [1_000, 1024 ** 2],
      { default: 32 * 1024 },
    ),
    approval: choice(
      APPROVAL_MODES,
      "Commands that an owner approves before they run; risky: all that may do more than read in the " +
        "workspace. Default: never in a sandbox, risky elsewhere.",
    ),
    askSeconds: integer("A command that nobody approves in this time is denied.", [1, DAY_SECONDS], {
      default: 300,
    }),
  }),
  fetch: section({
    allowHosts: texts(
      "Hosts that fetch may read although they are not public, e.g. `wiki.lan` or `127.0.0.1:8080`.",
      { default: [] },
    ),
  }),
  send_file: section({
    maxBytes: integer("Maximum bytes of a file that send_file sends.", [1, SENT_FILE_MAX_BYTES], {
      default: 5 * 1024 ** 2,
    }),
  }),
  search: object({
    provider: choice(["brave", "searxng"], "Service that answers the tool search.", { required: true }),
    apiKey: optionalText("Required for brave. For searxng: a bearer token, if it needs one."),
    url: address("Required for searxng; may be private.", { instead: "apiKey" }),
  }),
  subagents: object(
    { tools: filter },
    "Rules for sub-agents, in addition to the general ones. A non-empty allow replaces the rule that " +
      "they have no session tools; it never grants sessions_spawn beyond the depth limit.",
    { default: {} },
  ),
  sandbox: object({ tools: filter }, "Rules for sandboxed sessions, in addition to the general ones.", {
    default: {},
  }),
  sessions_spawn: section({ attachments }),
  mcp,
});
