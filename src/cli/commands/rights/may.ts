// Implements `parley may`: explains whether one session may access another, and names the rule that decides.

import type { PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import type { Explained, Explanation } from "../../../core/shapes/explanation.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";
import { findOrName } from "../../session-name.ts";

const ACCESS_WIDTH = 8;

/** Returns lines about the other checks that failed, and about the settings that the access would need. */
function moreOf({ rule, settings, checks }: Explanation): string[] {
  const further = checks.filter((check) => !check.allowed).slice(1);
  const missing = settings.filter((setting) => !rule.includes(setting));
  return [
    ...further.map((check) => `also: ${check.rule}`),
    ...missing.map((setting) => `would need ${setting}`),
  ];
}

function lines(cli: Cli, { viewer, target, answers }: PayloadOf<"access.explain">): void {
  const gone = target.exists
    ? ""
    : " (this session does not exist yet; the answers apply once it is created)";
  cli.line(safeLine(`${viewer.key} -> ${target.key}${gone}`));
  const said = new Map<string, string>();
  for (const answer of answers) {
    const { access, allowed, rule } = answer;
    const more = moreOf(answer);
    const whole = JSON.stringify([allowed, rule, more]);
    const same = said.get(whole);
    if (same === undefined) said.set(whole, access);
    const verdict = allowed ? cli.style("green", "yes") : cli.style("red", "no ");
    const text = same === undefined ? rule : `same as for ${same}`;
    cli.line(`${safeLine(access).padEnd(ACCESS_WIDTH)}${verdict}  ${safeLine(text)}`);
    if (same !== undefined) continue;
    for (const line of more) cli.line(cli.style("dim", `${" ".repeat(ACCESS_WIDTH + 5)}${safeLine(line)}`));
  }
}

export async function explainAccess(
  cli: Cli,
  [viewer = "", target = ""]: readonly string[],
  options: { readonly access?: Explained },
): Promise<number> {
  return withLink(cli, async (link) => {
    const from = await findOrName(cli, link, viewer, {});
    if (!from.ok) return cli.fail(from);
    const to = await findOrName(cli, link, target, {});
    if (!to.ok) return cli.fail(to);
    const params = { viewer: from.value.key, target: to.value.key, ...optional({ access: options.access }) };
    const answer = await link.request("access.explain", params);
    if (!answer.ok) return cli.fail(answer);
    lines(cli, answer.value);
    cli.document(answer.value);
    return EXIT.done;
  });
}
