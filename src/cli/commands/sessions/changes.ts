// Implements the commands that change a session: stop, rename, archive, restore, reset, delete.

import type { RequestParams } from "../../../contract/client/types.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { INSTRUCTIONS_CHARS_MAX } from "../../../core/shapes/session.ts";
import { safeLine, safeText } from "../../../core/text/safe-text.ts";
import { openPrompter } from "../../channels/prompter.ts";
import { type Cli, EXIT } from "../../cli.ts";
import type { Link, Reply } from "../../gateway-link.ts";
import { count } from "../../layout.ts";
import { withSession } from "../../session-name.ts";
import { readStdin } from "../../stdin.ts";

/** Prints the answer to a change, with a line for people. */
function told<T>(cli: Cli, answer: Reply<T>, words: (value: T) => string): number {
  if (!answer.ok) return cli.fail(answer);
  cli.line(safeLine(words(answer.value)));
  cli.document(answer.value);
  return EXIT.done;
}

export function stopSession(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return withSession(cli, name, async (link, sessionKey) =>
    told(cli, await link.request("chat.abort", { sessionKey }), ({ runIds }) =>
      runIds.length === 0
        ? `${sessionKey} has no work to stop.`
        : `Stopped ${count(runIds.length, "run")} of ${sessionKey} and its sub-agents.`,
    ),
  );
}

function patch(
  cli: Cli,
  name: string,
  change: Omit<RequestParams<"sessions.patch">, "key">,
  done: string,
): Promise<number> {
  return withSession(cli, name, async (link, key) =>
    told(cli, await link.request("sessions.patch", { key, ...change }), () => `${key} ${done}.`),
  );
}

export async function renameSession(
  cli: Cli,
  [name = "", label]: readonly string[],
  { clear = false }: { readonly clear?: boolean },
): Promise<number> {
  if ((label !== undefined) === clear)
    return cli.fail({ code: "usage", error: "give a new label, or --clear" }, EXIT.usage);
  const done = label === undefined ? "has no label now" : `is now called ${JSON.stringify(label.trim())}`;
  return patch(cli, name, { label: label ?? null }, done);
}

/** Prints the instructions of a session, or changes them. `-` stands for the text on standard input. */
export async function sessionInstructions(
  cli: Cli,
  [name = "", given]: readonly string[],
  { clear = false }: { readonly clear?: boolean },
): Promise<number> {
  if (given !== undefined && clear)
    return cli.fail({ code: "usage", error: "give new instructions, or --clear" }, EXIT.usage);
  if (clear) return patch(cli, name, { instructions: null }, "has no instructions of its own now");
  if (given === undefined)
    return withSession(cli, name, async (link, sessionKey) => {
      const read = await link.request("chat.history", { sessionKey, limit: 1 });
      if (!read.ok) return cli.fail(read);
      const { instructions = null } = read.value;
      cli.line(safeText(instructions ?? `${sessionKey} has no instructions of its own.`));
      cli.document({ sessionKey, instructions });
      return EXIT.done;
    });
  const text = given === "-" ? await readStdin(cli.parts, INSTRUCTIONS_CHARS_MAX) : given;
  const empty = { code: "usage", error: "the instructions are empty; --clear removes them" };
  if (text.trim() === "") return cli.fail(empty, EXIT.usage);
  return patch(cli, name, { instructions: text }, "has new instructions, from its next run on");
}

export function archiveSession(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return patch(cli, name, { archived: true }, "is archived");
}

export function restoreSession(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  return patch(cli, name, { archived: false }, "is restored");
}

export function resetSession(cli: Cli, [name = ""]: readonly string[]): Promise<number> {
  const reset = async (link: Link, key: string) =>
    told(
      cli,
      await link.request("sessions.reset", { key }),
      ({ sessionId }) => `Reset ${key}; its session id is now ${sessionId}.`,
    );
  return withSession(cli, name, reset, { whole: true });
}

interface DeleteOptions {
  readonly keepTranscript?: boolean;
  readonly yes?: boolean;
}

/** Asks whether to delete a session. Fails if nobody can be asked. */
async function confirmed(cli: Cli, key: string): Promise<Result<boolean>> {
  if (!cli.parts.isTTY || cli.options.json)
    return fail("invalid_argument", "Deleting a session needs --yes where no terminal can ask.");
  const prompter = await openPrompter(cli.parts);
  const answer = await prompter.confirm(safeLine(`Delete ${key}? This cannot be undone.`));
  return answer.ok || answer.code === "cancelled" ? ok(answer.ok && answer.value) : answer;
}

export function deleteSession(
  cli: Cli,
  [name = ""]: readonly string[],
  { keepTranscript = false, yes = false }: DeleteOptions,
): Promise<number> {
  const work = async (link: Link, key: string): Promise<number> => {
    const agreed = yes ? ok(true) : await confirmed(cli, key);
    if (!agreed.ok) return cli.fail(agreed, EXIT.usage);
    if (!agreed.value) return cli.fail({ code: "cancelled", error: "Nothing was deleted." });
    const deleted = await link.request("sessions.delete", { key, deleteTranscript: !keepTranscript });
    return told(cli, deleted, () => `Deleted ${key}${keepTranscript ? "; its messages were kept" : ""}.`);
  };
  return withSession(cli, name, work, { whole: yes });
}
