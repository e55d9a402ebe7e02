// One idempotency key at several gateways of one store: at the same moment, behind a lost commit, after a death.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sharedWorld } from "../../src/engine/cluster/shared-world.ts";
import { StoreProblem } from "../../src/store/problems.ts";
import type { Store } from "../../src/store/sql.ts";
import { embeddedGround, type Ground, postgresGround } from "../kit/cluster.ts";
import { cleanup, quietWorld, temporaryFolder } from "../kit/engine.ts";
import { mortalProcess } from "../kit/mortal-store.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import { openHouse } from "./kit.ts";

type Params = Readonly<Record<string, unknown>>;
type Ask = (method: string, params: Params) => Promise<Record<string, unknown>>;

const KEYS = 100;
/** Keys that are asked for at once. */
const AT_ONCE = 10;
const GROUNDS = [
  ["sqlite", embeddedGround],
  ["postgres", () => postgresGround()],
] as const;

/** A gateway on a ground, whose commands work in `workspace`. */
async function gatewayOn(ground: Ground, workspace: string, through = (store: Store): Store => store) {
  const world = quietWorld();
  const disk = await ground.open(world);
  const mortal = mortalProcess(through(disk), sharedWorld(disk, world));
  const agents = settingsWith().agents.map(({ id }) => agentSettings(id, { workspace }));
  const house = await openHouse({
    ...{ disk: mortal.store, world: mortal.world, choices: { agents }, dies: true },
  });
  const client = await house.client();
  let isDead = false;
  cleanup(async () => {
    if (!isDead) await house.engine.stop(0);
  });
  const die = (): void => {
    isDead = true;
    mortal.die();
  };
  const ask: Ask = (method, params) => client.call(method as "health", params as never);
  return { ask, die };
}

const linesOf = (file: string): string[] => readFileSync(file, "utf8").split("\n").filter(Boolean);

function command(text: string): Params {
  return { name: "exec", arguments: { command: text } };
}

/** A request for each key, and what it needs before; each would fail if it were done a second time. */
const REQUESTS: Readonly<Record<string, (ask: Ask, at: number) => Promise<readonly [string, Params]>>> = {
  "a message": async (_, at) => ["chat.send", { sessionKey: "agent:main:main", message: `hello ${at}` }],
  "a command": async (_, at) => ["tools.invoke", command(`echo ${at} >> log.txt`)],
  "a session with a label": async (_, at) => ["sessions.create", { agentId: "main", label: `desk ${at}` }],
  "a deletion": async (ask, at) => {
    const made = await ask("sessions.create", { agentId: "main", idempotencyKey: `made ${at}` });
    return ["sessions.delete", { key: made.key }];
  },
  "a job that goes": async (ask) => {
    const schedule = { kind: "every", everyMs: 3_600_000 };
    const made = await ask("cron.add", { schedule, message: "look" });
    return ["cron.remove", { id: (made.job as { id: string }).id }];
  },
};

/** A store whose next commit is answered with "connection lost", and takes place once `go` is called. */
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

/** A store that tells when a transaction is asked for. */
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

describe.each(GROUNDS)("on %s", (_, openGround) => {
  test.each(Object.keys(REQUESTS))(
    "one key, one answer: sends 100 keys to two gateways at once: %s",
    async (name) => {
      const workspace = temporaryFolder();
      const ground = await openGround();
      const gateways = [await gatewayOn(ground, workspace), await gatewayOn(ground, workspace)];
      const ask: Ask = (method, params) => gateways[0]?.ask(method, params) ?? Promise.reject();
      const one = async (at: number): Promise<void> => {
        const [method, params] = (await REQUESTS[name]?.(ask, at)) ?? ["", {}];
        const keyed = { ...params, idempotencyKey: `key ${at}` };
        const [first, second] = await Promise.all(gateways.map((gateway) => gateway.ask(method, keyed)));
        expect(second).toEqual(first);
        expect(await ask(method, keyed)).toEqual(first);
      };
      for (let at = 0; at < KEYS; at += AT_ONCE) {
        await Promise.all(Array.from({ length: AT_ONCE }, (_each, more) => one(at + more)));
      }
      if (name === "a command") {
        const numbers = linesOf(join(workspace, "log.txt")).map(Number);
        expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: KEYS }, (_each, at) => at));
      }
    },
  );

  test("a call whose gateway died is not run again: its key reports that the outcome is unknown", async () => {
    const workspace = temporaryFolder();
    const ground = await openGround();
    const [one, two] = [await gatewayOn(ground, workspace), await gatewayOn(ground, workspace)];
    execFileSync("mkfifo", ["started", "never"], { cwd: workspace });
    const begun = readFile(join(workspace, "started"));
    const keyed = { ...command("echo ran >> log.txt; echo > started; cat never"), idempotencyKey: "cut" };
    one.ask("tools.invoke", keyed).catch(() => {});
    await begun;
    // It waits for as long as the first one may still answer.
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
    "a retry at another gateway gets the answer of a commit that is still under way: %s",
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
