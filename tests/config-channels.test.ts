// Accounts of channels: the keys that they set, and the keys that they inherit from the channel.

import { expect, test } from "vitest";
import { useConfigHome } from "./kit/process/config-home.ts";

const config = useConfigHome();

test("an account inherits missing keys in inbound and threadBindings from its channel", () => {
  const { settings } = config().good(`{ inbound: { mediaMaxMb: 3 }, channels: { telegram: {
    botToken: "x", inbound: { debounceMs: 0 }, threadBindings: { idleHours: 2 },
    accounts: { work: { botToken: "y", inbound: { queue: "steer" }, threadBindings: { maxAgeHours: 5 } } } } } }`);
  const { inbound, threadBindings } = settings.channels.find(({ accountId }) => accountId === "work") ?? {};
  expect(inbound).toEqual({ debounceMs: 0, queue: "steer", mediaMaxBytes: 3 * 1024 * 1024 });
  expect(threadBindings).toEqual({ enabled: true, idleHours: 2, maxAgeHours: 5 });
});
