// Loses the answer to each commit in turn, while the process continues. Checks that each step still happens
// once and that each end is published once (I2, I4, I5).

import { expect, test } from "vitest";
import type { LiveEvent } from "../../src/core/shapes/event.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { isInDoubt } from "../../src/store/problems.ts";
import type { Store } from "../../src/store/sql.ts";
import { openStoreOn, temporaryFolder } from "../kit/engine/engine.ts";
import { openFlowApp } from "../kit/engine/flow-app.ts";
import { openSpawnApp } from "../kit/engine/spawn-app.ts";
import { PATIENCE_MS, until } from "../kit/until.ts";
import { begin, checkFinished, scenario } from "./conversation/story.ts";
import { fanOut } from "./job/fan-out-story.ts";

const COMMITS_MAX = 120;
/** Number of cases that run in parallel, because each case mostly waits for a retry. */
const AT_ONCE = 6;

interface App {
  readonly engine: Engine;
  readonly store: Store;
  readonly events: readonly LiveEvent[];
  commits(): number;
  quiet(): Promise<void>;
}

interface Story<A extends App> {
  open(disk: Store, crash: { commit: number; when: "lost" }): Promise<A>;
  /** Sends the request repeatedly, like a client that gets no answer. */
  begin(app: A): Promise<unknown>;
  check(app: A): Promise<void>;
}

const conversation: Story<Awaited<ReturnType<typeof openFlowApp>>> = {
  open: (disk, crash) => openFlowApp({ ...scenario(30), disk, crash }),
  async begin(app) {
    while ((await begin(app)) === "not_told");
  },
  async check(app) {
    await checkFinished(app, "accepted");
    expect(app.sent).toHaveLength(1);
  },
};

const job: Story<Awaited<ReturnType<typeof openSpawnApp>>> = {
  open: (disk, crash) => openSpawnApp({ ...fanOut.app, disk, crash }),
  async begin(app) {
    const again = (error: unknown): unknown => (isInDoubt(error) ? fanOut.begin(app) : Promise.reject(error));
    await fanOut.begin(app).catch(again);
  },
  async check(app) {
    await fanOut.check(app);
    expect(app.sent).toHaveLength(3);
  },
};

/**
 * Checks that each end was published exactly once. The last ones may be published after all work has
 * ended.
 */
async function checkTold(app: App): Promise<void> {
  const rows = await app.store.db.selectFrom("runs").select("run_id").execute();
  const runIds = rows.map((row) => row.run_id).toSorted();
  const told = (): string[] =>
    app.events.flatMap((event) => (event.kind === "run_ended" ? [event.runId] : [])).toSorted();
  await until(() => told().length >= runIds.length);
  expect(told()).toEqual(runIds);
}

/** Runs a case in which one answer is lost. Returns false if it ended before that commit. */
async function tell<A extends App>(kind: Store["kind"], story: Story<A>, commit: number): Promise<boolean> {
  const disk = await openStoreOn(kind, temporaryFolder());
  const app = await story.open(disk, { commit, when: "lost" }).catch((error: unknown) => {
    if (isInDoubt(error)) return undefined;
    throw error;
  });
  // If the answer to a commit of the start is lost, the start fails and is repeated.
  if (app === undefined) return true;
  await story.begin(app);
  await app.quiet();
  await story.check(app);
  await checkTold(app);
  const isCut = app.commits() >= commit;
  await app.engine.stop(0);
  return isCut;
}

async function loseEach<A extends App>(kind: Store["kind"], story: Story<A>): Promise<number> {
  for (let first = 1; first < COMMITS_MAX; first += AT_ONCE) {
    const commits = Array.from({ length: AT_ONCE }, (_, at) => first + at);
    const cut = await Promise.all(commits.map((commit) => tell(kind, story, commit)));
    if (cut.includes(false)) return first + cut.indexOf(false) - 1;
  }
  throw new Error(`the story has more than ${COMMITS_MAX} commits`);
}

export function lostAnswersContract(kind: Store["kind"]): void {
  test("I2, I4: a conversation takes each step once and publishes each end once, whichever answer is lost", {
    timeout: PATIENCE_MS,
  }, async () => {
    expect(await loseEach(kind, conversation)).toBeGreaterThan(12);
  });

  test("I2, I4: each job of a fan-out is done and announced once, whichever answer is lost", {
    timeout: PATIENCE_MS,
  }, async () => {
    expect(await loseEach(kind, job)).toBeGreaterThan(15);
  });
}
