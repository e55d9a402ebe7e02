// Replies of runs that a web hook or a node started: once, to the destination with which the run was started.

import { expect, test } from "vitest";
import { type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";

const MAIN = "agent:main:main";
const OTHER = "agent:research:main";
const PLACE = { channel: "webchat", to: OTHER };

/** Runs a message of a web hook or a node in the main session. Returns what was sent, and the other session. */
async function replies(
  kind: "hook" | "node",
  how: "replyTo" | "route",
  play: NonNullable<FlowAppOptions["plays"]>[string],
) {
  const app = await openFlowApp({ plays: { [MAIN]: play } });
  await app.engine.commit((unit) =>
    app.engine.acceptIn(unit, {
      sessionKey: MAIN,
      input: { text: "news", provenance: { kind }, ...(how === "replyTo" ? { replyTo: PLACE } : {}) },
      ...(how === "route" ? { route: PLACE } : {}),
    }),
  );
  await app.quiet();
  return { sent: app.sent.map(({ text }) => text), texts: await app.texts(OTHER) };
}

test.each([
  ["hook", "replyTo"],
  ["node", "replyTo"],
  // A run that version 0.1 had not ended.
  ["hook", "route"],
  ["node", "route"],
] as const)("RP1: the reply of a %s with its destination in %s is delivered once", async (kind, how) => {
  expect(await replies(kind, how, () => "done")).toEqual({ sent: ["done"], texts: ["assistant: done"] });
});

test.each(["replyTo", "route"] as const)("RP1: a failed run with %s delivers nothing", async (how) => {
  const play = () => {
    throw new Error("it broke");
  };
  expect(await replies("hook", how, play)).toEqual({ sent: [], texts: [] });
});
