// Several gateways of one store get requests with the same idempotency key at the same moment.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import type { Store } from "../../../src/store/sql.ts";
import { embeddedGround, type Ground, postgresGround } from "../../kit/engine/cluster.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { mortalProcess } from "../../kit/engine/mortal-store.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { openHouse } from "../kit.ts";

export type Params = Readonly<Record<string, unknown>>;
export type Ask = (method: string, params: Params) => Promise<Record<string, unknown>>;

/** Number of keys that are used at the same time. */
const AT_ONCE = 10;
export const GROUNDS = [
  ["sqlite", embeddedGround],
  ["postgres", () => postgresGround()],
] as const;

/** Opens a gateway on a store, with commands that run in `workspace`. */
export async function gatewayOn(ground: Ground, workspace: string, through = (store: Store): Store => store) {
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

export const linesOf = (file: string): string[] => readFileSync(file, "utf8").split("\n").filter(Boolean);

export function command(text: string): Params {
  return { name: "exec", arguments: { command: text } };
}

/**
 * For each method, a request and the preparation that it needs. If the request were executed twice, the
 * second execution would fail.
 */
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

/** Time limit per key; a busy machine needs half a second. */
const PATIENCE_MS_A_KEY = 3_000;

/** Tests this many keys: each request is sent to two gateways at the same moment, on each ground. */
export function keysContract(keys: number, grounds: readonly (typeof GROUNDS)[number][] = GROUNDS): void {
  describe.each(grounds)("on %s", (_, openGround) => {
    test.each(Object.keys(REQUESTS))(
      `one key, one answer: sends ${keys} keys to two gateways at once: %s`,
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
        for (let at = 0; at < keys; at += AT_ONCE) {
          await Promise.all(Array.from({ length: AT_ONCE }, (_each, more) => one(at + more)));
        }
        if (name === "a command") {
          const numbers = linesOf(join(workspace, "log.txt")).map(Number);
          expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: keys }, (_each, at) => at));
        }
      },
      keys * PATIENCE_MS_A_KEY,
    );
  });
}
