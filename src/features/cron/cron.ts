// Adds scheduled jobs: messages to agents at set times.

import { flag, section } from "../../config/schema/setting.ts";
import { type Feature, type FeatureTool, feature, type LoadedBy, type TimerCode } from "../../feature.ts";
import { CRON_EVENT, CRON_METHODS } from "./contract.ts";
import { CRON_DEADLINE } from "./job.ts";
import { jobsDenied } from "./rules.ts";
import { CRON_TABLES } from "./tables.ts";
import { CRON_TOOL } from "./tool-entry.ts";

export const cron = feature({
  name: "cron",
  settings: { cron: section({ enabled: flag("Whether scheduled jobs run.", { default: true }) }) },
  tables: CRON_TABLES,
  grants: {
    jobs: {
      summary: "scheduled jobs",
      tables: ["cron_jobs", "cron_runs"],
      line: "agent_id || ': ' || coalesce(name, id) || ': ' || message",
      isRefusedIfLong: true,
    },
  },
  methods: CRON_METHODS,
  handlers: async (): LoadedBy<"handlers"> => (await import("./methods.ts")).cronMethods,
  events: { cron: CRON_EVENT },
  tools: {
    cron: {
      ...CRON_TOOL,
      denied: jobsDenied,
      isInternal: true,
      load: (): ReturnType<FeatureTool["load"]> => import("./tool.ts"),
    },
  },
  commands: async (): LoadedBy<"commands"> => (await import("./commands.ts")).CRON,
  commandWords: { cron: "schedule schedules timer timers job jobs remind" },
  commandFor: { "cron.list": "npx parley-gateway cron" },
  forms: async (): LoadedBy<"forms"> => (await import("./version-4.ts")).CRON_FORMS,
  timers: {
    [CRON_DEADLINE]: {
      isOn: ({ cron: { enabled } }): boolean => enabled,
      load: (): Promise<TimerCode> => import("./turns.ts"),
    },
  },
  runEnded: {
    isOwn: ({ input: { provenance } }): boolean => provenance?.kind === "cron",
    load: (): ReturnType<Required<Feature>["runEnded"]["load"]> => import("./turns.ts"),
  },
  checks: (): LoadedBy<"checks"> => import("./checks.ts"),
});
