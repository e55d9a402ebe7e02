// Implements `parley tool`, which calls a tool as a session, and `parley call`, which calls a protocol
// method.
// Both print the answer as JSON, with or without --json.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { safeJson } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { withLink } from "../gateway-link.ts";
import { findSession } from "../session-name.ts";

type JsonObject = Record<string, unknown>;

function readObject(text: string, what: string): { value: JsonObject } | { error: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { value };
    return { error: `${what} must be a JSON object, like '{"limit": 5}'` };
  } catch (error) {
    return { error: `${what} must be JSON, like '{"limit": 5}': ${(error as Error).message}` };
  }
}

function show(cli: Cli, value: unknown): void {
  cli.line(safeJson(value));
  cli.document(value);
}

export async function runTool(
  cli: Cli,
  args: readonly string[],
  options: { readonly as?: string },
): Promise<number> {
  const [name = "", json = "{}"] = args;
  const read = readObject(json, "the arguments");
  if ("error" in read) return cli.fail({ code: "usage", error: read.error }, EXIT.usage);
  return withLink(cli, async (link) => {
    const acting = options.as === undefined ? ok(undefined) : await findSession(link, options.as);
    if (!acting.ok) return cli.fail(acting);
    const as = optional({ sessionKey: acting.value });
    const result = await link.request("tools.invoke", { name, arguments: read.value, ...as });
    if (!result.ok) return cli.fail(result);
    show(cli, result.value);
    const { status } = result.value;
    return status === "error" || status === "forbidden" ? EXIT.failed : EXIT.done;
  });
}

export async function runCall(cli: Cli, args: readonly string[]): Promise<number> {
  const [method = "", json = "{}"] = args;
  const read = readObject(json, "the parameters");
  if ("error" in read) return cli.fail({ code: "usage", error: read.error }, EXIT.usage);
  return withLink(cli, async (link) => {
    const answer = await link.call(method, read.value);
    if (!answer.ok) return cli.fail(answer);
    show(cli, answer.value);
    return EXIT.done;
  });
}
