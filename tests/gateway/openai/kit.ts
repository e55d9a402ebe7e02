// Helpers for the tests of OpenAI-compatible routes: the official client, and a run that answers when the
// test says so.

import OpenAI from "openai";
import type { Session } from "../../../src/core/shapes/session.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { until } from "../../kit/until.ts";
import { type House, type Play, TOKEN } from "../kit.ts";

export const PNG = `data:image/png;base64,${Buffer.from("picture").toString("base64")}`;

/** Returns the official client. It retries only if a test asks for it. */
export function openAi(
  house: Pick<House, "http">,
  more: ConstructorParameters<typeof OpenAI>[0] = {},
): OpenAI {
  return new OpenAI({ apiKey: TOKEN, baseURL: `${house.http}/v1`, maxRetries: 0, ...more });
}

export function said(content: string): { role: "user"; content: string } {
  return { role: "user", content };
}

/** A play that reports its start, and ends when the test releases it. */
export interface HeldPlay {
  readonly play: Play;
  /** Resolves with the handle of the run when it has started. */
  readonly begun: Promise<Parameters<Play>[0]>;
  end(reply: string): void;
}

export function heldPlay(): HeldPlay {
  const begun = Promise.withResolvers<Parameters<Play>[0]>();
  const ended = Promise.withResolvers<string>();
  return {
    begun: begun.promise,
    end: ended.resolve,
    play: (handle) => {
      begun.resolve(handle);
      return new Promise((resolve, reject) => {
        handle.signal.addEventListener("abort", () => reject(new Error("stopped")));
        void ended.promise.then(resolve);
      });
    },
  };
}

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
