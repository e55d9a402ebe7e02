// Runs of peers that wait for runs here, and runs here that wait for peers: no cycle over two gateways.

import { expect, test } from "vitest";
import type { Result } from "../../src/core/shapes/errors.ts";
import type { Run } from "../../src/core/shapes/run.ts";
import { openPeerWait, openWait } from "../../src/engine/lanes/waits.ts";
import type { Unit } from "../../src/engine/unit.ts";
import { makeSessions, openTestEngine } from "../kit/engine/engine.ts";

const MAIN = "agent:main:main";
const NEXT = "agent:next:main";
const RESEARCH = "peer:lab/agent:research:main";
const OTHER = "peer:lab/agent:other:main";

interface Message {
  readonly from: string;
  readonly to: string;
  readonly chainId?: string;
  readonly waitMs?: number;
}

/** Opens an engine with sessions of this gateway and of the peer `lab`. No run is executed. */
async function open() {
  const { engine, store } = await openTestEngine({ start: false, execute: async () => ({ state: "ok" }) });
  await makeSessions(store, MAIN, NEXT, RESEARCH, OTHER);
  const accept = async (
    { to, chainId = "chain" }: Message,
    wait: (unit: Unit, run: Run) => Promise<Result<unknown>>,
  ): Promise<string> => {
    const done = await engine.commit(async (unit) => {
      const sent = await engine.acceptIn(unit, {
        ...{ sessionKey: to, input: { text: "go" }, chain: { chainId, hop: 1 } },
      });
      return sent.ok ? wait(unit, sent.value.run) : sent;
    });
    return done.ok ? "waits" : `${done.code}: ${done.error}`;
  };
  let runs = 0;
  return {
    /** A run of a session here sends a message and waits. */
    sends: (message: Message) =>
      accept(message, (unit, { runId, sessionKey }) => {
        runs += 1;
        return openWait(
          unit,
          { runId: `run-${runs}`, sessionKey: message.from },
          {
            ...{ callId: `call-${runs}`, kind: "run", targets: [{ id: runId, sessionKey }] },
            deadlineAt: unit.now + 30_000,
          },
        );
      }),
    /** A message of a run at the peer arrives, which waits. */
    arrives: (message: Message) =>
      accept(message, (unit, run) => {
        const { from, chainId = "chain", waitMs = 30_000 } = message;
        return openPeerWait(unit, from, run, { chainId, deadlineAt: unit.now + waitMs });
      }),
  };
}

test("I7: a peer that waits is refused if the session that it asks waits for the peer's session", async () => {
  const { sends, arrives } = await open();
  expect(await sends({ from: MAIN, to: NEXT, chainId: "one" })).toBe("waits");
  expect(await sends({ from: NEXT, to: RESEARCH, chainId: "one" })).toBe("waits");
  expect(await arrives({ from: RESEARCH, to: MAIN, chainId: "two" })).toBe(
    `wait_cycle: waiting would close a cycle: ${[RESEARCH, MAIN, NEXT, RESEARCH].join(" -> ")}`,
  );
  expect(await arrives({ from: OTHER, to: MAIN, chainId: "two" })).toBe("waits");
});

test("I7: in one chain, any other session of a peer counts, because its waits are not known here", async () => {
  const { sends, arrives } = await open();
  expect(await sends({ from: MAIN, to: RESEARCH })).toBe("waits");
  expect(await arrives({ from: OTHER, to: MAIN })).toContain("wait_cycle");
  expect(await arrives({ from: OTHER, to: NEXT })).toBe("waits");
});

test("I7: a run here is refused if it would wait for a peer that waits for it, until that wait is over", async () => {
  const { sends, arrives } = await open();
  expect(await arrives({ from: RESEARCH, to: MAIN, chainId: "one", waitMs: 0 })).toBe("waits");
  expect(await sends({ from: MAIN, to: RESEARCH, chainId: "two" })).toBe("waits");
  expect(await arrives({ from: OTHER, to: NEXT, chainId: "three" })).toBe("waits");
  expect(await sends({ from: NEXT, to: OTHER, chainId: "four" })).toContain("wait_cycle");
});
