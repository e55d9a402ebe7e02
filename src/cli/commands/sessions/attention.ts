// Lists the items that need a person, each with the command that settles it.

import type { AttentionItem } from "../../../contract/methods/attention.ts";
import { GROUP_TITLES } from "../../../core/rules/attention/groups.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { withLink } from "../../gateway-link.ts";
import { age, excerpt, wholeText } from "../../layout.ts";

const SUMMARY_MAX_CHARS = 160;

/**
 * Returns the command that settles an item. Returns undefined if there is none, or the caller is not allowed
 * to use it.
 */
function commandFor({ kind, ref, sessionKey = "", actions, hold }: AttentionItem): string | undefined {
  if (hold !== undefined && actions.length > 0) return `npx parley-gateway sessions release ${sessionKey}`;
  if (actions.length === 0 || actions.includes("stop")) return undefined;
  switch (kind) {
    case "permission":
      return `npx parley-gateway permissions allow ${ref} (or deny)`;
    case "pairing":
      return `npx parley-gateway channels pair approve ${ref} (or reject)`;
    case "store":
      return undefined;
    case "node":
      return `npx parley-gateway node approve ${ref} (or reject)`;
    case "delivery":
      return `npx parley-gateway deliveries retry ${ref} (or dismiss)`;
    case "question":
    case "unanswered":
      return `npx parley-gateway chat --session ${sessionKey}, or npx parley-gateway runs dismiss ${ref}`;
    case "run":
    case "budget":
      return actions.includes("retry")
        ? `npx parley-gateway runs retry ${ref} (or dismiss)`
        : `npx parley-gateway runs dismiss ${ref}`;
  }
}

function linesOf(item: AttentionItem, nowMs: number): string[] {
  const {
    kind,
    sessionKey,
    label,
    title,
    since,
    summary,
    state,
    hold,
    waitingFor = [],
    waitingForCount = 0,
  } = item;
  const name = label ?? sessionKey ?? title ?? "";
  const others = waitingForCount > 1 ? ` and ${waitingForCount - 1} more` : "";
  const waits = waitingFor[0] === undefined ? "" : `, waits for ${waitingFor[0]}${others}`;
  const mark = kind === "run" ? (hold === "held" ? "held" : (state ?? kind)) : kind;
  const head = `  ${safeLine(name)}  ${mark}, ${age(since, nowMs)}${safeLine(waits)}`;
  const command = commandFor(item);
  return [
    head,
    `    ${kind === "permission" ? wholeText(summary, "    ") : excerpt(summary, SUMMARY_MAX_CHARS)}`,
    ...(command === undefined ? [] : [`    ${safeLine(command)}`]),
  ];
}

/** Prints the attention list. `limit`: the maximum number of items of each group. */
export function listAttention(cli: Cli, limit: number): Promise<number> {
  return withLink(cli, async (link) => {
    const answer = await link.request("attention.list", { limit });
    if (!answer.ok) return cli.fail(answer);
    const { groups, ts } = answer.value;
    for (const { group, count, more, items } of groups) {
      if (count === 0 && group !== "needs_you") continue;
      cli.line(cli.style("bold", `${GROUP_TITLES[group]} (${count}${more ? "+" : ""})`));
      for (const item of items) for (const line of linesOf(item, ts)) cli.line(line);
      if (count > items.length) cli.line(`  and ${count - items.length} more`);
    }
    cli.document(answer.value);
    return EXIT.done;
  });
}
