// One bot account and two gateways. Only one gateway receives the account's messages at a time.

import { expect, test } from "vitest";
import { type Account, Accounts, ListenProblem } from "../../src/channels/accounts.ts";
import { type ClusterProcess, embeddedGround, openCluster } from "../kit/engine/cluster.ts";
import { cleanup, openTestEngine } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";
import { settableWorld } from "../kit/world.ts";

const NAME = "telegram:1";
const DAY_MS = 86_400_000;

/** Records the processes that listen to the account now, and those that listened earlier. */
interface Ears {
  readonly listening: Set<string>;
  readonly began: string[];
  most: number;
}

function listenIn(process: ClusterProcess, name: string, ears: Ears, more: { failing?: () => boolean } = {}) {
  const { engine } = process.app;
  const accounts = new Accounts({
    commit: engine.commit,
    world: process.world,
    owner: engine.processId,
    leaseUntil: engine.leaseUntil,
  });
  accounts.start([
    {
      name: NAME,
      async listen({ signal }) {
        ears.began.push(name);
        if (more.failing?.() === true) throw new Error("the platform closed the connection");
        ears.listening.add(name);
        ears.most = Math.max(ears.most, ears.listening.size);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        ears.listening.delete(name);
      },
    },
  ]);
  let dead = false;
  cleanup(async () => {
    if (!dead) await accounts.stop();
  });
  return {
    accounts,
    kill() {
      dead = true;
      process.die();
      // A dead process no longer listens.
      ears.listening.delete(name);
    },
  };
}

async function twoGateways() {
  const cluster = await openCluster(embeddedGround);
  const ears: Ears = { listening: new Set(), began: [], most: 0 };
  return { ears, a: await cluster.join({ plays: {} }), b: await cluster.join({ plays: {} }) };
}

test("only one process listens to an account, and another takes over when it dies", async () => {
  const { ears, a, b } = await twoGateways();
  const first = listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  first.kill();
  await until(() => ears.listening.has("b"));
  expect(ears.began).toEqual(["a", "b"]);
  expect(ears.most).toBe(1);
});

test("a planned stop releases the account at once, without waiting until the lease expires", async () => {
  const { ears, a, b } = await twoGateways();
  const first = listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  await first.accounts.stop();
  await until(() => ears.listening.has("b"));
  expect(ears.most).toBe(1);
});

test("if a process was suspended and another one took over the account, the first one stops listening", async () => {
  const { ears, a, b } = await twoGateways();
  listenIn(a, "a", ears);
  await until(() => ears.listening.has("a"));
  listenIn(b, "b", ears);
  a.pause();
  await until(() => ears.listening.has("b"));
  a.goOn();
  await until(() => !ears.listening.has("a"));
  expect(ears.listening).toEqual(new Set(["b"]));
});

test("a listener that fails is restarted", async () => {
  const { ears, a } = await twoGateways();
  let failures = 2;
  listenIn(a, "a", ears, { failing: () => failures-- > 0 });
  await until(() => ears.listening.has("a"));
  expect(ears.began).toEqual(["a", "a", "a"]);
});

/** Listens in one process whose clock the test sets. */
async function listenAlone(listen: Account["listen"]) {
  const { world, set } = settableWorld();
  const execute = async () => {
    throw new Error("no run is made here");
  };
  const { engine } = await openTestEngine({ world, execute });
  const { commit, processId: owner, leaseUntil } = engine;
  const accounts = new Accounts({ commit, world, owner, leaseUntil });
  cleanup(() => accounts.stop());
  return {
    world,
    set,
    start: () => accounts.start([{ name: NAME, listen }]),
    status: () => accounts.statuses()[0],
    /** Lets this time pass, with a look at the lease in each second. */
    async pass(ms: number): Promise<void> {
      for (let passedMs = 0; passedMs < ms; ) {
        const stepMs = Math.min(await world.timerWithin(1_000), ms - passedMs);
        await world.advance(stepMs);
        passedMs += stepMs;
      }
    },
  };
}

test.each([
  ["back", -DAY_MS, 120_000, 1],
  ["forward", DAY_MS, 2_000, 4],
])(
  "if the clock is set %s, only the time that passed decides whether an account has worked for long",
  async (_, stepMs, workedMs, pauseS) => {
    let failures = 2;
    let closes: (() => void) | undefined;
    const { set, start, status, pass } = await listenAlone(async ({ ready }) => {
      if (failures-- > 0) throw new ListenProblem("the network is down");
      ready();
      await new Promise<void>((resolve) => {
        closes = resolve;
      });
    });
    start();
    await pass(10_000);
    expect(status()).toMatchObject({ state: "ready" });
    set(stepMs);
    await pass(workedMs);
    closes?.();
    await until(() => status()?.state === "retrying");
    const { retryAt = 0, since = 0 } = status() ?? {};
    expect((retryAt - since) / 1_000 / pauseS).toBeGreaterThanOrEqual(0.75);
    expect((retryAt - since) / 1_000 / pauseS).toBeLessThanOrEqual(1.25);
  },
);
