// Helpers for the tests of OpenAI-compatible routes: the sessions that requests have created.

import type { Session } from "../../../src/core/shapes/session.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { House } from "../../gateway/kit.ts";
import { until } from "../../kit/until.ts";

export const PNG = `data:image/png;base64,${Buffer.from("picture").toString("base64")}`;

/** Returns the only session that an OpenAI request has created, with its runs. */
export async function openAiSessions(house: House): Promise<Session[]> {
  const rows = await house.store.db
    .selectFrom("sessions")
    .select("key")
    .where("key", "like", "agent:%:openai:%")
    .orderBy("created_at")
    .execute();
  const sessions: Session[] = [];
  for (const { key } of rows) {
    const session = await getSession(house.store.db, key);
    if (session !== undefined) sessions.push(session);
  }
  return sessions;
}

/** Resolves when all of these sessions are archived. */
export function allArchived(house: House): Promise<true> {
  return until(async () => {
    const sessions = await openAiSessions(house);
    return sessions.length > 0 && sessions.every((session) => session.archivedAt !== undefined);
  });
}

export async function runStates(house: House, sessionKey: string): Promise<string[]> {
  return (await listRuns(house.store.db, { sessionKey, limit: 50 })).map((run) => run.state);
}
