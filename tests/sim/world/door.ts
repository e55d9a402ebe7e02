// Connects the clients of a story to a gateway without sockets: authorization, requests, answers, events.

import { fullModelName } from "../../../src/agent/model/model.ts";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import { createAuthority } from "../../../src/gateway/auth.ts";
import { createDispatcher, type MethodDeps } from "../../../src/gateway/dispatch.ts";
import { createFanout } from "../../../src/gateway/socket/fanout.ts";
import { createCalendar } from "../../../src/world/calendar.ts";
import { OWNER_TOKEN } from "../plan.ts";

type Given = "settings" | "world" | "engine" | "sandboxFor" | "dropTranscript";

const NO_BACKUPS = fail("store_unavailable", "the story makes no backups");

export function openDoor(given: Pick<MethodDeps, Given>) {
  const { settings, world, engine } = given;
  const { clock } = world;
  const owner = { token: OWNER_TOKEN, role: "operator", scopes: ["operator.admin"] } as const;
  const authority = createAuthority(clock, [owner, ...settings.gateway.tokens]);
  const deps: MethodDeps = {
    ...given,
    watch: { toolAnswered: () => {} },
    startedAt: clock.now(),
    connected: () => 0,
    presence: () => [],
    ignoredParams: { note: () => {}, rows: () => [] },
    channels: new Map(),
    version: "story",
    token: OWNER_TOKEN,
    ...createCalendar(() => "UTC"),
    models: () => [],
    checkModel: (name) => fullModelName(settings.providers, name),
    localServers: async () => [],
    tryModel: async () => ok({ usable: true, text: "built in", durationMs: 0 }),
    accessTokens: { configured: [], authority, end: () => {} },
    backups: { list: async () => NO_BACKUPS, begin: async () => NO_BACKUPS },
    tell: () => {},
  };
  return {
    authority,
    dispatcher: createDispatcher(deps),
    fanout: createFanout({
      ...world,
      bus: engine.bus,
      settings,
      shared: engine.store.shared !== undefined,
    }),
  };
}
