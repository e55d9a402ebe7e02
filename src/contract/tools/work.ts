// Defines the tools that work outside of sessions: files, commands, paired devices, texts to people.

import type { Code } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { NODE_TIMEOUT_DEFAULT_MS, NODE_TIMEOUT_MAX_MS } from "../../core/shapes/node.ts";
import { FILE_LINES_MAX, FILE_TEXT_MAX_BYTES } from "../../core/shapes/tool.ts";
import {
  about,
  anyObject,
  anything,
  declared,
  either,
  flag,
  list,
  nullable,
  number,
  object,
  oneOf,
  openObject,
  text,
} from "../schema.ts";
import { choice, done, OF_SESSIONS, REPEATABLE, type ToolEntry } from "./parts.ts";

/** Timeout of a node's command, in seconds. */
export const NODE_TIMEOUT = {
  fallback: NODE_TIMEOUT_DEFAULT_MS / 1_000,
  min: 1,
  max: NODE_TIMEOUT_MAX_MS / 1_000,
};
export const EXEC_SECONDS = 120;

/** Error codes of a file tool. */
const FILE = [
  "path_outside",
  "file_not_found",
  "file_problem",
  "too_large",
  "sandbox_unavailable",
  "run_aborted",
] as const satisfies readonly Code[];

const WORKERS = "Every session, including sub-agents.";

const NODE = {
  id: text(),
  name: text(),
  platform: text(),
  connected: flag(),
  commands: list(text(), "Commands that may be sent to the node."),
};

export const WORK_TOOLS = {
  message: {
    description:
      "Send a text to people on a channel: to your own people, to the people of a session that you may " +
      "send to, or to a person or group that the settings name. Your reply reaches your own people " +
      "automatically: use this for other people, or for more than one message.",
    params: openObject(
      {
        channel: text("telegram, discord, whatsapp, signal or imessage, if configured."),
        to: text("The platform's id of the chat, group, room or person."),
        message: text("Text in Markdown."),
      },
      {
        accountId: text("Account of the channel. Default: the first one that can reach the destination."),
        threadId: text("Thread or topic of the chat."),
      },
    ),
    result: object(
      {
        status: about(oneOf("accepted"), "The text is in the outbox, but not delivered yet."),
        deliveryId: text("Id of the delivery in the outbox."),
        channel: text(),
        to: text(),
      },
      { accountId: text(), threadId: text() },
    ),
    errors: ["too_large", "channel_unknown", "not_visible", "send_denied", "queue_full", "run_aborted"],
    who: `If a channel is configured: ${OF_SESSIONS}`,
    ...REPEATABLE,
  },
  read: {
    description:
      "Read lines of a text file in your workspace, or view a small picture (PNG, JPEG, GIF, WebP). " +
      `Returns at most ${FILE_LINES_MAX} lines and ${FILE_TEXT_MAX_BYTES / 1024} KiB; says if text was cut.`,
    params: openObject(
      { path: text("Path of the file, relative to the workspace.") },
      {
        offset: number("Number of the first line. Default 1."),
        limit: number(`Maximum number of lines. Default and limit: ${FILE_LINES_MAX}.`),
      },
    ),
    result: either(
      object(
        {
          status: done,
          path: text(),
          text: text(),
          fromLine: number("Number of the first line in the text."),
          lines: number("Number of lines in the text."),
        },
        {
          totalLines: number("Number of lines in the file. Absent if the file is too large to count them."),
          truncated: oneOf(true),
          note: text("Describes the missing part, and how to read it."),
        },
      ),
      object({
        status: done,
        path: text(),
        mimeType: text(),
        bytes: number("Size of the file."),
        images: list(declared<ImageBlock>("ImageBlock"), "The picture."),
      }),
    ),
    errors: FILE,
    who: WORKERS,
    ...REPEATABLE,
  },
  write: {
    description:
      "Write a whole file in your workspace, replacing its content. Missing folders are created. " +
      "To change a part, use edit.",
    params: openObject({
      path: text("Path of the file, relative to the workspace."),
      content: text("Complete new content of the file."),
    }),
    result: object({
      status: done,
      path: text(),
      bytes: number("Size of the file."),
      created: flag("True if the file is new."),
    }),
    errors: FILE,
    who: WORKERS,
    parallel: false,
    idempotent: true,
  },
  edit: {
    description:
      "Replace one piece of text in a file in your workspace. The old text must occur exactly once.",
    params: openObject({
      path: text("Path of the file, relative to the workspace."),
      oldText: text("Text to replace, exactly as in the file."),
      newText: text("Replacement. An empty text removes the old text."),
    }),
    result: object({ status: done, path: text(), line: number("Number of the first changed line.") }),
    errors: FILE,
    who: WORKERS,
    parallel: false,
    idempotent: false,
  },
  exec: {
    description:
      "Run a bash command in your workspace and get its output (stdout and stderr together) and exit code. " +
      "The command gets no input and a minimal environment; processes that it started end with it. " +
      "Long output is cut in the middle.",
    params: openObject(
      { command: text("Command that bash -c runs in the workspace.") },
      {
        timeoutSeconds: number(
          `Time limit in seconds. Default ${EXEC_SECONDS}, at most \`tools.exec.timeoutSeconds\`.`,
        ),
      },
    ),
    result: object(
      {
        status: done,
        exitCode: about(nullable(number()), "Exit code. Null if a signal ended the command."),
        output: text("stdout and stderr together."),
        outputBytes: number("Size of the whole output."),
        truncated: flag("True if the middle of the output was left out."),
        durationMs: number(),
      },
      {
        signal: text("The signal that ended the command."),
        note: text("Says that the workspace of a sandboxed session is full."),
      },
    ),
    errors: ["too_large", "exec_timeout", "exec_failed", "sandbox_unavailable", "run_aborted"],
    who: WORKERS,
    parallel: false,
    idempotent: false,
  },
  nodes: {
    description:
      "Use paired devices (nodes): other machines that offer commands. `list`: lists the nodes; " +
      "`describe`: lists the commands of one; `invoke`: runs a command on one and waits for its result. " +
      "Common commands: exec with params {command: [program, argument, …], cwd?, timeoutMs?} runs a " +
      "program there without a shell; notify with params {title?, body} shows a notification. Each device " +
      "decides which commands it allows.",
    params: openObject(
      { action: choice(["list", "describe", "invoke"], "Action to take.") },
      {
        node: text("Name or id of the node. Optional if there is only one."),
        command: text("With `invoke`: one of the node's commands."),
        params: about(anyObject, "With `invoke`: params of the command."),
        timeoutSeconds: number(
          `With \`invoke\`: seconds to wait. Default ${NODE_TIMEOUT.fallback}, at most ${NODE_TIMEOUT.max}.`,
        ),
      },
    ),
    result: either(
      object({ count: number(), nodes: list(object(NODE)) }),
      object(
        {
          ...NODE,
          version: text(),
          caps: list(text()),
          notAllowed: list(text(), "Commands of the node that the settings do not allow."),
          sessionKey: text("Key of the node's own session. The session might not exist yet."),
        },
        { lastSeenAt: number("Time of the node's last connection, in ms since 1970.") },
      ),
      object({
        status: done,
        node: text("Name of the node."),
        command: text(),
        result: about(anything, "Result from the node."),
      }),
    ),
    errors: [
      "node_not_found",
      "node_unavailable",
      "node_command_denied",
      "node_timeout",
      "node_failed",
      "outcome_unknown",
      "too_large",
      "rate_limited",
      "run_aborted",
    ],
    who: "If a device is paired: every session. Sandboxed sessions only with `nodes.allowSandboxed`.",
    parallel: false,
    idempotent: false,
  },
} as const satisfies Record<string, ToolEntry>;
