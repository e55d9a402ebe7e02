// One idempotency key at several gateways of one store: at the same moment, after a lost commit, after a
// crash. cluster.deep.test.ts sends more keys.

import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { StoreProblem } from "../../../src/store/problems.ts";
import type { Store } from "../../../src/store/sql.ts";
import { quick, share } from "../../kit/deep.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { command, GROUNDS, gatewayOn, keysContract, linesOf, type Params } from "./kit.ts";

/** Returns a store. Its next commit fails with "connection lost", but takes effect when `go` is called. */
function stuck() {
  const [begun, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isNext = false;
  return {
    begun: begun.promise,
    go: going.resolve,
    next() {
      isNext = true;
    },
    through: (store: Store): Store => ({
      ...store,
      async transaction(work) {
        if (!isNext) return store.transaction(work);
        isNext = false;
        const lost = Promise.withResolvers<never>();
        const done = store.transaction(async (tx) => {
          const value = await work(tx);
          begun.resolve();
          lost.reject(new StoreProblem("unreachable", "store", { detail: "connection lost", inDoubt: true }));
          await going.promise;
          return value;
        });
        return Promise.race([done, lost.promise]);
      },
    }),
  };
}

/** Returns a store that calls `tell` when a transaction begins. */
function heard(tell: () => void) {
  return (store: Store): Store => ({
    ...store,
    transaction(work) {
      const done = store.transaction(work);
      tell();
      return done;
    },
  });
}

const MADE_ONCE: Readonly<Record<string, readonly [string, Params]>> = {
  "a message": ["chat.send", { sessionKey: "agent:main:main", message: "hello" }],
  "a session": ["sessions.create", { agentId: "main" }],
  "a job": ["cron.add", { schedule: { kind: "every", everyMs: 3_600_000 }, message: "look" }],
  "a command": ["tools.invoke", command("echo ran >> log.txt")],
};

quick(keysContract)(20, GROUNDS.slice(0, 1));

describe.each(share(GROUNDS.slice(0, 1), GROUNDS.slice(1)))("on %s", (_, openGround) => {
  test("if a gateway died during a call, the call is not repeated, and its key reports that the outcome is unknown", async () => {
    const workspace = temporaryFolder();
    const ground = await openGround();
    const [one, two] = [await gatewayOn(ground, workspace), await gatewayOn(ground, workspace)];
    execFileSync("mkfifo", ["started", "never"], { cwd: workspace });
    const begun = readFile(join(workspace, "started"));
    const keyed = { ...command("echo ran >> log.txt; echo > started; cat never"), idempotencyKey: "cut" };
    one.ask("tools.invoke", keyed).catch(() => {});
    await begun;
    // The second call waits as long as the first one may still get an answer.
    const asked = two.ask("tools.invoke", keyed);
    one.die();
    const answer = await asked;
    expect(answer).toMatchObject({ status: "error", code: "outcome_unknown" });
    expect(await two.ask("tools.invoke", keyed)).toEqual(answer);
    expect(linesOf(join(workspace, "log.txt"))).toEqual(["ran"]);
    expect(
      await two.ask("tools.invoke", { ...keyed, ...command("echo again >> log.txt"), idempotencyKey: "new" }),
    ).toMatchObject({ exitCode: 0 });
  });

  test.each(Object.keys(MADE_ONCE))(
    "a retry at another gateway gets the answer of a commit that is still in progress: %s",
    async (name) => {
      const workspace = temporaryFolder();
      const ground = await openGround();
      const lost = stuck();
      const one = await gatewayOn(ground, workspace, lost.through);
      let tell = (): void => {};
      const two = await gatewayOn(
        ground,
        workspace,
        heard(() => tell()),
      );
      const [method, params] = MADE_ONCE[name] ?? ["", {}];
      const keyed = { ...params, idempotencyKey: "late" };
      lost.next();
      const first = one.ask(method, keyed);
      await lost.begun;
      tell = () => lost.go();
      const second = await two.ask(method, keyed);
      expect(await first).toEqual(second);
      if (name === "a command") expect(linesOf(join(workspace, "log.txt"))).toEqual(["ran"]);
    },
  );
});
