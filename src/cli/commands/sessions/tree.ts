// Implements `parley sessions tree`: shows the sessions as a tree, each below the session that spawned it.
// A session whose parent is not listed is shown at the top.

import type { ListedRow } from "../../../contract/methods/sessions.ts";
import { type Cli, EXIT } from "../../cli.ts";
import { type Link, type Reply, withLink } from "../../gateway-link.ts";
import { count, table } from "../../layout.ts";
import { findSession, readSessions } from "../../session-name.ts";

/** Limits of the list. Newer sessions come first. */
const LISTED = { rows: 20_000, pages: 20, perPage: 1_000 };

type Row = Pick<
  ListedRow,
  "key" | "label" | "createdAt" | "updatedAt" | "archivedAt" | "state" | "spawnedBy"
>;

interface Node extends Row {
  readonly children: readonly Node[];
}

interface TreeOptions {
  readonly session?: string;
  readonly archived?: boolean;
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
    const children = (below.get(row.key) ?? []).toSorted((a, b) => {
      const second = ({ createdAt }: Row): number => Math.floor(createdAt / 1_000);
      const name = ({ label, key }: Row): string => label ?? key;
      return second(a) - second(b) || name(a).localeCompare(name(b), "en", { numeric: true });
    });
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

function cellsOf(cli: Cli, node: Node, lead: string, rest: string): string[][] {
  const own = [
    `${lead}${node.key}`,
    node.archivedAt === undefined ? node.state : "archived",
    cli.ago(node.updatedAt),
    node.label ?? "",
  ];
  const below = node.children.flatMap((child, at) => {
    const last = at === node.children.length - 1;
    return cellsOf(cli, child, `${rest}${last ? "└─ " : "├─ "}`, `${rest}${last ? "   " : "│  "}`);
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

export async function showTree(cli: Cli, options: TreeOptions): Promise<number> {
  return withLink(cli, async (link) => {
    const wanted = { includeGlobal: true, includeArchived: options.archived };
    const read = await readSessions(link, wanted, LISTED);
    if (!read.ok) return cli.fail(read);
    const { sessions, nextCursor } = read.value;
    const nodes = await chosen(link, treeOf(sessions), options.session);
    if (!nodes.ok) return cli.fail(nodes);
    const cells = nodes.value.flatMap((node) => cellsOf(cli, node, "", ""));
    for (const line of table(["SESSION", "STATE", "UPDATED", "LABEL"], cells)) cli.line(line);
    const more = nextCursor === undefined ? {} : { more: true };
    if (more.more) cli.note(`Only the newest ${count(sessions.length, "session")} are shown.`);
    cli.document({ sessions: nodes.value, ...more });
    return EXIT.done;
  });
}
