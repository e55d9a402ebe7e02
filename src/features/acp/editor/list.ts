// Lists sessions of the gateway for an editor. A session works in the folder of its agent, not in that of the
// editor. Sub-agents are left out: they belong to the sessions that spawned them.

import { resolve } from "node:path";
import type { ListSessionsRequest, ListSessionsResponse } from "@agentclientprotocol/sdk/unstable";
import type { Link, Reply } from "../../../cli/gateway-link.ts";
import { findSession } from "../../../cli/session-name.ts";
import { optional } from "../../../core/optional.ts";
import { ok } from "../../../core/shapes/errors.ts";
import type { AcpOptions } from "./server.ts";

const PAGE_ROWS = 100;
/** The folder of a session whose agent's folder the token may not know. */
const UNKNOWN_FOLDER = "/";

/** Returns a page of the sessions that this editor may open, newest activity first. */
export async function listSessions(
  link: Link,
  { session, agent }: AcpOptions,
  { cwd, cursor }: ListSessionsRequest,
): Promise<Reply<ListSessionsResponse>> {
  const described = await link.request("agents.describe", {});
  if (!described.ok) return described;
  const folders = new Map(described.value.agents.map(({ id, workspace }) => [id, workspace]));
  const only = session === undefined ? undefined : await findSession(link, session);
  if (only?.ok === false) return only;
  const listed = await link.request("sessions.list", {
    ...{ limit: PAGE_ROWS, includeDerivedTitles: true, roots: true, agentId: agent },
    ...{ cursor: cursor ?? undefined, keys: only === undefined ? undefined : [only.value] },
  });
  if (!listed.ok) return listed;
  const { sessions, nextCursor } = listed.value;
  const rows = sessions.map(({ key, agentId, updatedAt, label, displayName, derivedTitle }) => ({
    sessionId: key,
    cwd: folders.get(agentId) ?? UNKNOWN_FOLDER,
    updatedAt: new Date(updatedAt).toISOString(),
    ...optional({ title: label ?? displayName ?? derivedTitle }),
  }));
  const found = cwd == null ? rows : rows.filter((row) => row.cwd === resolve(cwd));
  return ok({ sessions: found, ...optional({ nextCursor }) });
}
