// Implements `parley sessions`: lists and shows sessions, prints transcripts.

import type { RequestParams } from "../../../contract/client/types.ts";
import type { ListedRow } from "../../../contract/methods/sessions.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { age, count, table } from "../../layout.ts";
import { messageLines } from "../../message-lines.ts";
import { withSession } from "../../session-name.ts";
import { chooseConversation } from "./earlier.ts";

type SessionsPage = PayloadOf<"sessions.list">;

interface ListOptions {
  readonly limit: number;
  readonly agent?: string;
  readonly search?: string;
  readonly archived?: boolean;
}

function cells(row: ListedRow, nowMs: number): string[] {
  const waiting = row.queuedRuns > 0 ? ` +${row.queuedRuns}` : "";
  const state = row.failure === undefined ? row.state : "failed";
  return [
    row.key,
    row.sessionKind,
    `${row.archivedAt === undefined ? state : "archived"}${waiting}`,
    `${age(row.updatedAt, nowMs)} ago`,
    row.totalTokens === 0 ? "" : String(row.totalTokens),
    row.label ?? "",
  ];
}

/** Maximum number of pages that are read for one list. A page can have fewer rows than requested. */
const PAGES_MAX = 10;

/** Reads pages until `limit` rows are read, or the list ends. */
async function readRows(
  link: Link,
  wanted: RequestParams<"sessions.list"> & { readonly limit: number },
): Promise<Reply<SessionsPage>> {
  let page = await link.request("sessions.list", wanted);
  for (let pages = 1; page.ok && pages < PAGES_MAX; pages += 1) {
    const { sessions, nextCursor } = page.value;
    const left = wanted.limit - sessions.length;
    if (nextCursor === undefined || left <= 0) return page;
    const next: Reply<SessionsPage> = await link.request("sessions.list", {
      ...wanted,
      limit: left,
      cursor: nextCursor,
    });
    page = next.ok
      ? { ok: true, value: { ...next.value, sessions: [...sessions, ...next.value.sessions] } }
      : next;
  }
  return page;
}

export async function listSessions(
  cli: Cli,
  _args: readonly string[],
  options: ListOptions,
): Promise<number> {
  const { limit, agent, search, archived } = options;
  return withLink(cli, async (link) => {
    const page = await readRows(link, {
      limit,
      ...optional({ agentId: agent, search }),
      ...(archived === true ? { includeArchived: true } : {}),
    });
    if (!page.ok) return cli.fail(page);
    const { sessions, nextCursor } = page.value;
    const nowMs = cli.parts.world.clock.now();
    if (sessions.length === 0 && nextCursor === undefined) cli.line("No sessions found.");
    else if (sessions.length > 0) {
      const names = ["KEY", "KIND", "STATE", "UPDATED", "TOKENS", "LABEL"];
      for (const line of table(
        names,
        sessions.map((row) => cells(row, nowMs)),
      ))
        cli.line(line);
    }
    if (nextCursor !== undefined && sessions.length < limit)
      cli.note("There may be more: not all sessions were searched. Narrow the search.");
    else if (nextCursor !== undefined)
      cli.note(`There are more than ${count(limit, "session")}. Use --limit or --search.`);
    cli.document(page.value);
    return EXIT.done;
  });
}

interface HistoryOptions {
  readonly limit: number;
  readonly before?: string;
  /** Number or session id of an earlier conversation. */
  readonly earlier?: string;
}

export async function showHistory(
  cli: Cli,
  args: readonly string[],
  options: HistoryOptions,
): Promise<number> {
  const { limit, before, earlier } = options;
  return withSession(cli, args[0] ?? "", async (link, sessionKey) => {
    const chosen = await chooseConversation(link, sessionKey, earlier);
    if (!chosen.ok) return cli.fail(chosen);
    const params = { sessionKey, ...chosen.value, limit: Math.min(limit, 1000) };
    const page = await link.request("chat.history", { ...params, ...optional({ before }) });
    if (!page.ok) return cli.fail(page);
    const { messages, nextBefore } = page.value;
    if (messages.length === 0) cli.line("No messages yet.");
    for (const message of messages) for (const line of messageLines(cli, message)) cli.line(line);
    if (nextBefore !== undefined) cli.note(`Earlier messages: --before ${safeLine(nextBefore)}`);
    cli.document(page.value);
    return EXIT.done;
  });
}

async function readRow(link: Link, key: string): Promise<Reply<ListedRow>> {
  const params = { keys: [key], includeArchived: true, includeGlobal: true };
  const page = await link.request("sessions.list", params);
  if (!page.ok) return page;
  const [row] = page.value.sessions;
  if (row !== undefined) return { ok: true, value: row };
  return { ok: false, code: "session_not_found", error: `The session ${key} was removed in the meantime.` };
}

function shown(value: unknown, name: string, nowMs: number): string {
  if (name.endsWith("At") && typeof value === "number") {
    const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
    return `${format.format(value)} (${age(value, nowMs)} ago)`;
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export async function showSession(cli: Cli, args: readonly string[]): Promise<number> {
  return withSession(cli, args[0] ?? "", async (link, key) => {
    const found = await readRow(link, key);
    if (!found.ok) return cli.fail(found);
    const nowMs = cli.parts.world.clock.now();
    const fields = Object.entries(found.value);
    const width = Math.max(...fields.map(([field]) => field.length));
    for (const [field, value] of fields) {
      cli.line(`${cli.style("dim", field.padEnd(width))}  ${safeLine(shown(value, field, nowMs))}`);
    }
    cli.document(found.value);
    return EXIT.done;
  });
}
