// Implements `parley sessions tree`: shows the sessions as a tree, each below the session that spawned it.
// A session whose parent is not listed is shown at the top.

import type { ListedRow } from "../../../contract/methods/sessions.ts";
import type { PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { safeLine } from "../../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { age, count, table } from "../../layout.ts";
import { findSession } from "../../session-name.ts";

const PAGE_SESSIONS = 1_000;
/** Maximum number of pages that are read. Newer sessions come first. */
const PAGES_MAX = 20;

type Row = Pick<
  ListedRow,
  "key" | "label" | "createdAt" | "updatedAt" | "archivedAt" | "state" | "spawnedBy"
>;

interface Node extends Row {
  readonly children: readonly Node[];
}

interface TreeOptions {
  readonly archived?: boolean;
}

async function readAll(
  link: Link,
  includeArchived: boolean,
): Promise<Reply<{ rows: readonly Row[]; more: boolean }>> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page: Reply<PayloadOf<"sessions.list">> = await link.request("sessions.list", {
      limit: PAGE_SESSIONS,
      includeGlobal: true,
      ...(includeArchived ? { includeArchived } : {}),
      ...optional({ cursor }),
    });
    if (!page.ok) return page;
    rows.push(...page.value.sessions);
    cursor = page.value.nextCursor;
    if (cursor === undefined) break;
  }
  return { ok: true, value: { rows, more: cursor !== undefined } };
}

/** Compares siblings by age. The jobs of one answer start together, so their names decide. */
function inOrder(a: Row, b: Row): number {
  const second = ({ createdAt }: Row): number => Math.floor(createdAt / 1_000);
  const name = ({ label, key }: Row): string => label ?? key;
  return second(a) - second(b) || name(a).localeCompare(name(b), "en", { numeric: true });
}

/**
 * Builds the tree. The roots are the sessions whose parent is not in `rows`, newest first; the children of a
 * session are listed oldest first.
 */
export function treeOf(rows: readonly Row[]): Node[] {
  const known = new Set(rows.map(({ key }) => key));
  const below = new Map<string, Row[]>();
  const roots: Row[] = [];
  for (const row of rows) {
    const { spawnedBy } = row;
    const isRoot = spawnedBy === undefined || !known.has(spawnedBy);
    const siblings = isRoot ? roots : (below.get(spawnedBy) ?? []);
    siblings.push(row);
    if (!isRoot) below.set(spawnedBy, siblings);
  }
  const grown = (row: Row): Node => {
    const children = (below.get(row.key) ?? []).toSorted(inOrder);
    return { ...row, children: children.map(grown) };
  };
  return roots.map(grown);
}

function findNode(nodes: readonly Node[], key: string): Node | undefined {
  for (const node of nodes) {
    const found = node.key === key ? node : findNode(node.children, key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function cellsOf(node: Node, nowMs: number, lead: string, rest: string): string[][] {
  const own = [
    `${lead}${node.key}`,
    node.archivedAt === undefined ? node.state : "archived",
    `${age(node.updatedAt, nowMs)} ago`,
    node.label ?? "",
  ];
  const below = node.children.flatMap((child, at) => {
    const last = at === node.children.length - 1;
    return cellsOf(child, nowMs, `${rest}${last ? "└─ " : "├─ "}`, `${rest}${last ? "   " : "│  "}`);
  });
  return [own, ...below];
}

/** Returns the whole tree, or only the named session with the sessions below it. */
async function chosen(link: Link, nodes: readonly Node[], name: string | undefined): Promise<Reply<Node[]>> {
  if (name === undefined) return { ok: true, value: [...nodes] };
  const found = await findSession(link, name);
  if (!found.ok) return found;
  const node = findNode(nodes, found.value);
  if (node !== undefined) return { ok: true, value: [node] };
  const error = `The session ${found.value} is not in the list.`;
  return { ok: false, code: "session_not_found", error, hint: "If it is archived, add --archived." };
}

export async function showTree(cli: Cli, args: readonly string[], options: TreeOptions): Promise<number> {
  return withLink(cli, async (link) => {
    const read = await readAll(link, options.archived === true);
    if (!read.ok) return cli.fail(read);
    const { rows, more } = read.value;
    const nodes = await chosen(link, treeOf(rows), args[0]);
    if (!nodes.ok) return cli.fail(nodes);
    const nowMs = cli.parts.world.clock.now();
    const cells = nodes.value.flatMap((node) => cellsOf(node, nowMs, "", ""));
    for (const line of table(["SESSION", "STATE", "UPDATED", "LABEL"], cells)) cli.line(line);
    if (more) cli.note(safeLine(`Only the newest ${count(rows.length, "session")} are shown.`));
    cli.document({ sessions: nodes.value, ...(more ? { more } : {}) });
    return EXIT.done;
  });
}
