// An app for flow tests with a channel on which people write, and functions that wait for the results.

import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { fakeChannel, openAccount } from "../../kit/platforms/fake-channel.ts";
import type { FakeWorld } from "../../kit/world.ts";

export const MAIN = "agent:main:main";
export const GROUP = "agent:main:telegram:group:-100";
export const DEBOUNCE_MS = 1_000;

/** Opens an app whose channel has this account. Default: an account that answers everybody at once. */
export async function open(options: Partial<FlowAppOptions> = {}, account = openAccount()) {
  const chat = fakeChannel();
  const { choices, ...more } = options;
  const app = await openFlowApp({
    plays: {},
    chat,
    ...more,
    choices: { channels: [account], ...choices },
  });
  return { app, chat, receive: app.inbound.receive };
}

/** Returns an account that merges messages of the same person within a short time. */
export const slow = (more: Partial<ReturnType<typeof openAccount>["inbound"]> = {}) =>
  openAccount({
    inbound: { debounceMs: DEBOUNCE_MS, queue: "followup", mediaMaxBytes: 1024 * 1024, ...more },
  });

/** Returns the stored messages, in order of arrival. */
export async function rows(app: FlowApp) {
  return app.store.db
    .selectFrom("inbound")
    .select(["message_id", "state", "run_id"])
    .orderBy("seq")
    .execute();
}

/** Advances the clock, and waits for the work that becomes due. */
export async function goOn(app: FlowApp, world: FakeWorld, ms: number): Promise<void> {
  await world.advance(ms);
  const isDue = async (): Promise<boolean> => {
    const due = app.store.db.selectFrom("deadlines").select("key").where("kind", "=", "inbound");
    return (await due.where("due_at", "<=", world.clock.now()).executeTakeFirst()) !== undefined;
  };
  while (await isDue()) await world.advance(0);
}

/** Advances the clock until no work is left. */
export async function workOff(app: FlowApp, world: FakeWorld, ms: number): Promise<void> {
  await world.advance(ms);
  const isDone = async (): Promise<boolean> =>
    (await rows(app)).every(({ state }) => state !== "pending") && (await app.isQuiet());
  while (!(await isDone())) await world.advance(1);
}
