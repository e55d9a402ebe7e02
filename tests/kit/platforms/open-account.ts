// Settings of an account, for any channel, that answers everybody immediately.

import type { AccountSettings } from "../../../src/core/shapes/settings/channels.ts";

export const OPEN_ACCOUNT: AccountSettings = {
  accountId: "default",
  dmPolicy: "open",
  allowFrom: [],
  groupPolicy: "open",
  groupAllowFrom: [],
  requireMention: true,
  groups: {},
  inbound: { debounceMs: 0, queue: "followup", mediaMaxBytes: 1_000_000 },
  threadBindings: { enabled: true, idleHours: 24, maxAgeHours: 0 },
};
