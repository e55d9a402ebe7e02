// Adds nodes: paired devices that offer commands to agents and send messages to them.

import { flag, section, texts } from "../../config/schema/setting.ts";
import { isSandboxed } from "../../core/rules/sandbox-policy.ts";
import { type Feature, type FeatureTool, feature, type LoadedBy, type Services } from "../../feature.ts";
import { NODE_EVENTS, NODE_METHODS } from "./contract.ts";
import type { NodeHub } from "./hub.ts";
import { NODE_TABLES } from "./tables.ts";
import { NODES_TOOL, NOT_PAIRED } from "./tool-entry.ts";

export const nodes = feature({
  name: "nodes",
  settings: {
    nodes: section({
      enabled: flag("Whether devices can be paired and used.", { default: true, restart: true }),
      allowCommands: texts(
        "Commands that may be sent to nodes, `*` as a wildcard. Each node also has its own list.",
        {
          default: ["exec", "notify", "device.*"],
        },
      ),
      allowedSessionKeys: texts("Sessions that a node may write to, besides its own; `*` as a wildcard.", {
        default: [],
      }),
      allowSandboxed: flag(
        "Whether sandboxed sessions may use nodes, although nodes are outside of every sandbox.",
        { default: false },
      ),
    }),
  },
  tables: NODE_TABLES,
  grants: {
    nodes: {
      summary: "paired devices",
      tables: ["nodes", "node_requests"],
      line: "name || ' (' || platform || ', key ' || public_key || ')'",
    },
  },
  methods: NODE_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./methods.ts")).nodeMethods,
  events: NODE_EVENTS,
  tools: {
    nodes: {
      ...NODES_TOOL,
      needs: {
        async part(services: Services): Promise<unknown> {
          const hub = services.get("nodes") as NodeHub | undefined;
          return (await hub?.anyPaired()) === true ? hub : undefined;
        },
        otherwise: NOT_PAIRED,
      },
      denied(chain, settings): string | undefined {
        if (!settings.nodes.enabled) return "nodes.enabled is false";
        if (settings.nodes.allowSandboxed || !isSandboxed(chain, settings)) return undefined;
        const rule = "nodes are outside of its sandbox, and nodes.allowSandboxed is not true";
        return `this session is sandboxed, ${rule}`;
      },
      load: (): ReturnType<FeatureTool["load"]> => import("./tool.ts"),
    },
  },
  commands: async (): LoadedBy<"commands"> => (await import("./commands.ts")).NODES,
  forms: async (): LoadedBy<"forms"> => (await import("./version-4.ts")).NODE_FORMS,
  attention: (): LoadedBy<"attention"> => import("./attention.ts"),
  service: {
    isOn: ({ nodes: { enabled } }): boolean => enabled,
    load: (): ReturnType<Required<Feature>["service"]["load"]> => import("./hub.ts"),
  },
});
