// Answers the page's first request: the rows that it shows before its WebSocket is open. This answer takes
// two round trips, a WebSocket with its first answer four. The page reads everything again over the
// WebSocket.

import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import type { Dispatcher } from "../dispatch.ts";
import { type Env, refuse } from "../http/request.ts";

/** Maximum rows of the session list: more than a screen shows. */
const ROWS_MAX = 30;
/** Maximum items of each group of the inbox. */
const ITEMS_MAX = 10;

const pack = promisify(gzip);

/** `script`: the address of the page's script, by which a cached page notices that it is outdated. */
export async function tellFirst(
  c: Context<Env>,
  { call }: Pick<Dispatcher, "call">,
  script: string | undefined,
): Promise<Response> {
  const { signal } = c.req.raw;
  const wanted = { includeChildren: true, includeCounts: true, includeDerivedTitles: true };
  const list = { roots: true, ...wanted, limit: ROWS_MAX };
  const { result: sessions } = await call(c.get("caller"), "sessions.list", list, signal);
  if (!sessions.ok) return refuse(c, sessions);
  const limit = { limit: ITEMS_MAX };
  const { result: attention } = await call(c.get("caller"), "attention.list", limit, signal);
  if (!attention.ok) return refuse(c, attention);
  const { result: agents } = await call(c.get("caller"), "agents.list", {}, signal);
  if (!agents.ok) return refuse(c, agents);
  const rows = { sessions: sessions.value, attention: attention.value, agents: agents.value };
  const body = JSON.stringify({ ok: true, script, ...rows });
  c.header("content-type", "application/json");
  c.header("vary", "accept-encoding");
  if (!/\bgzip\b/.test(c.req.header("accept-encoding") ?? "")) return c.body(body);
  c.header("content-encoding", "gzip");
  return c.body(new Uint8Array(await pack(body)));
}
