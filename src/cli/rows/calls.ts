// The commands that call a tool or a method. They print the answer as JSON, with or without --json.

import { isObject } from "../../core/json.ts";
import { ok } from "../../core/shapes/errors.ts";
import { safeJson } from "../../core/text/safe-text.ts";
import { EXIT } from "../cli.ts";
import { asks, linked, option } from "../row.ts";
import { findSession } from "../session-name.ts";

type JsonObject = Record<string, unknown>;

/** Returns why a text is no JSON object. `what`: noun for the text. */
function objectProblem(text: string, what: string): string | undefined {
  const like = `like '{"limit": 5}'`;
  try {
    return isObject(JSON.parse(text)) ? undefined : `${what} must be a JSON object, ${like}`;
  } catch (error) {
    return `${what} must be JSON, ${like}: ${(error as Error).message}`;
  }
}

export const TOOL = linked({
  summary: "Call a tool as a session does",
  args: { "<name>": "Name of the tool", "[json]": { text: "Arguments as JSON", fallback: "{}" } },
  options: { as: option("<session>", "Use the rights of this session") },
  misuse: ({ json = "{}" }) => objectProblem(json, "the arguments"),
  async work(cli, link, { name, json = "{}", as }) {
    const acting = as === undefined ? ok(undefined) : await findSession(link, as);
    if (!acting.ok) return cli.fail(acting);
    const params = { name, arguments: JSON.parse(json) as JsonObject, sessionKey: acting.value };
    const result = await link.request("tools.invoke", params);
    if (!result.ok) return cli.fail(result);
    cli.line(safeJson(result.value));
    cli.document(result.value);
    const { status } = result.value;
    return status === "error" || status === "forbidden" ? EXIT.failed : EXIT.done;
  },
});

export const CALL = asks({
  summary: "Call a method of the gateway's protocol",
  args: { "<method>": "Name of the method", "[json]": { text: "Parameters as JSON", fallback: "{}" } },
  misuse: ({ json = "{}" }) => objectProblem(json, "the parameters"),
  ask: (link, { method, json = "{}" }) => link.call(method, JSON.parse(json)),
  print: (cli, answer) => cli.line(safeJson(answer)),
});
