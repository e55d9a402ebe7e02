// I9: a list contains exactly the sessions that the visibility check allows, on every page.

import fc from "fast-check";
import { expect, test } from "vitest";
import { mayAccess, operatorViewer } from "../../../src/access/access.ts";
import { optional } from "../../../src/core/optional.ts";
import type { Viewer } from "../../../src/core/rules/visibility.ts";
import { VISIBILITY_MODES } from "../../../src/core/shapes/settings/settings.ts";
import { listVisible } from "../../../src/flows/session/list.ts";
import { type App, openApp } from "../../tools/app.ts";

const AGENTS = ["main", "research", "writer"];

/** Creates sessions of three agents, some spawned by others, some archived. */
async function forest(app: App): Promise<string[]> {
  const keys = AGENTS.map((agent) => `agent:${agent}:main`);
  for (let index = 0; index < 24; index++) {
    const agent = AGENTS[index % 3] ?? "main";
    const spawnedBy = keys[(index * 7) % keys.length] ?? "agent:main:main";
    const key =
      index % 4 === 0 ? `agent:${agent}:telegram:group:${index}` : `agent:${agent}:subagent:s${index}`;
    await app.add(key, {
      updatedAt: 1_000 + (index % 5),
      ...(index % 4 === 0 ? {} : { spawnedBy, spawnDepth: 1 }),
      ...(index % 11 === 5 ? { archivedAt: 1 } : {}),
    });
    keys.push(key);
  }
  await app.add("cron:job", { agentId: "research" });
  return [...keys, "cron:job"];
}

async function listedKeys(
  app: App,
  viewer: Viewer,
  limit: number,
  includeArchived: boolean,
): Promise<string[]> {
  const ctx = { db: app.engine.store.db, settings: app.settings };
  const keys: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listVisible(ctx, viewer, {
      limit,
      includeArchived,
      ...optional({ cursor }),
    });
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    keys.push(...page.rows.map((row) => row.session.key));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return keys;
}

test.each(
  VISIBILITY_MODES.flatMap((mode) => [
    { mode, allow: [] as string[] },
    { mode, allow: ["main", "res*"] },
  ]),
)(
  "I9: with visibility $mode and allow list $allow, a list has exactly the sessions that the visibility check allows",
  async ({ mode, allow }) => {
    const app = await openApp({ tools: { visibility: mode, agentToAgent: { enabled: true, allow } } });
    const keys = await forest(app);
    const ctx = { db: app.engine.store.db, settings: app.settings };
    const viewers = fc.oneof(
      fc.record({ key: fc.constantFrom(...keys), sandboxed: fc.boolean() }),
      fc.record({ patterns: fc.subarray(["agent:main:*", "cron:*", "*telegram*", "agent:*:subagent:s1*"]) }),
    );
    await fc.assert(
      fc.asyncProperty(
        viewers,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (who, limit, archived) => {
          const viewer: Viewer =
            "key" in who
              ? {
                  kind: "session",
                  ...who,
                  agentId: (await app.session(who.key)).agentId,
                  sandboxClamp: "spawned",
                }
              : operatorViewer(["operator.read"], who.patterns);
          const expected: string[] = [];
          for (const key of keys) {
            const session = await app.session(key);
            if (session.archivedAt !== undefined && !archived) continue;
            if (await mayAccess(ctx, viewer, "list", session)) expected.push(key);
          }
          const listed = await listedKeys(app, viewer, limit, archived);
          expect(listed.toSorted()).toEqual(expected.toSorted());
        },
      ),
      { numRuns: 25 },
    );
    await app.close();
  },
);
