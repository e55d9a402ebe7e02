// Adds the Agent2Agent protocol: agents for A2A clients, agents elsewhere, and gateways that are peers.

import { a2aContext } from "../../core/shapes/session-key.ts";
import {
  type Feature,
  type FeatureRoute,
  type FeatureRuntime,
  feature,
  type LoadedBy,
} from "../../feature.ts";
import { PEER_METHODS } from "./peers/contract.ts";
import { AGENTS_PATH, PAIR_PATH } from "./peers/peer.ts";
import { A2A_SETTINGS, checkRuntime, RUNTIME, readSettings } from "./settings.ts";
import { A2A_TABLES } from "./tables.ts";

const ROUTE: FeatureRoute = {
  // Cards are public, and peers sign their requests.
  needsToken: false,
  load: (): ReturnType<FeatureRoute["load"]> => import("./door/paths.ts"),
};

export const a2a = feature({
  name: "a2a",
  settings: { a2a: A2A_SETTINGS },
  readSettings,
  tables: A2A_TABLES,
  grants: {
    peers: {
      summary: "other gateways",
      tables: ["peers"],
      line: "name || ' at ' || coalesce(url, 'no address')",
    },
    keys: { summary: "the gateway's own keys", tables: ["gateway_keys"], line: "name" },
  },
  methods: PEER_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./peers/methods.ts")).peerMethods,
  commands: async (): LoadedBy<"commands"> => (await import("./peers/commands.ts")).PEERS,
  routes: {
    "/a2a/*": { ...ROUTE, shown: "/a2a/" },
    "/.well-known/agent-card.json": ROUTE,
    [PAIR_PATH]: ROUTE,
    [AGENTS_PATH]: ROUTE,
  },
  runtimes: {
    a2a: {
      settings: {
        summary: "a2a: an agent elsewhere that is reached over A2A.",
        fields: RUNTIME,
        check: checkRuntime,
      },
      load: (): ReturnType<FeatureRuntime["load"]> => import("./remote/run.ts"),
    },
    peer: { load: (): ReturnType<FeatureRuntime["load"]> => import("./peers/run.ts") },
  },
  outbox: (): LoadedBy<"outbox"> => import("./door/notify.ts"),
  runEnded: {
    isOwn: ({ sessionKey }): boolean => a2aContext(sessionKey) !== undefined,
    load: (): ReturnType<Required<Feature>["runEnded"]["load"]> => import("./door/notify.ts"),
  },
  doctor: {
    isOutside: true,
    subjects: ({ agents }): string[] =>
      agents.flatMap(({ id, runtime }) => (runtime?.type === "a2a" ? [`agent ${id}`] : [])),
    load: (): ReturnType<Required<Feature>["doctor"]["load"]> => import("./doctor.ts"),
  },
});
