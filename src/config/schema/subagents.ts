// Defines the schema of sub-agents and of the sandbox in the configuration file.

import { z } from "zod";
import { SANDBOX_BACKENDS, SANDBOX_GIT, SANDBOX_MODES } from "../../core/shapes/settings/settings.ts";
import { DAY_SECONDS, limit, MAX, modelName, optionalText, texts, toolFilter } from "./fields.ts";

const sandboxKeys = {
  mode: z
    .enum(SANDBOX_MODES)
    .describe("Sessions whose tool calls run in a sandbox; non-main: all but main sessions."),
  sessionToolsVisibility: z
    .enum(["spawned", "all"])
    .describe(
      "Widest visibility of a sandboxed session: its own tree (spawned), or tools.sessions.visibility (all).",
    ),
  network: z.boolean().describe("Whether sandboxed commands have network access."),
  backend: z.enum(SANDBOX_BACKENDS).describe("auto: bubblewrap if it works, else docker."),
  memoryMb: limit(64, 1024 ** 2).describe("Maximum memory of one call, for all its processes together."),
  processesMax: limit(8, 32_768).describe("Maximum number of processes and threads of one call."),
  diskMb: limit(16, 1024 ** 2).describe("Maximum size of the workspace, and separately of temporary files."),
  git: z
    .enum(SANDBOX_GIT)
    .describe(
      "Access of sandboxed commands to the workspace's .git. Default: read; " +
        "write if mode is all and no workspace is configured.",
    ),
  image: optionalText.describe("For docker: the image in which commands run. Default: a small Linux."),
};

export const sandbox = z
  .strictObject({
    mode: sandboxKeys.mode.default("off"),
    sessionToolsVisibility: sandboxKeys.sessionToolsVisibility.default("spawned"),
    network: sandboxKeys.network.default(false),
    backend: sandboxKeys.backend.default("auto"),
    memoryMb: sandboxKeys.memoryMb.default(1_024),
    processesMax: sandboxKeys.processesMax.default(128),
    diskMb: sandboxKeys.diskMb.default(1_024),
    git: sandboxKeys.git.optional(),
    image: sandboxKeys.image,
  })
  .prefault({});

export const subagents = z
  .strictObject({
    allowAgents: texts.default([]).describe('Agents it may spawn besides itself; `"*"`: any.'),
    model: modelName.nullish().describe("Thinking level of sub-agents. Default: the agent's own."),
    maxConcurrent: limit(1, 1_000)
      .default(8)
      .describe("Maximum number of sub-agents that execute at the same time; others wait in order."),
    maxChildren: limit(1, 10_000)
      .default(20)
      .describe("Maximum number of unfinished sub-agents of one session; above it, a spawn fails."),
    maxSpawnDepth: limit(1, 5)
      .default(1)
      .describe("Maximum depth of spawns. 1: a sub-agent can't spawn; 2: its children can't; …"),
    runTimeoutSeconds: limit(0, 30 * DAY_SECONDS)
      .default(0)
      .describe("Time limit of a sub-agent, from the start of its execution; 0: none."),
    archiveAfterMinutes: limit(0, 525_600)
      .default(60)
      .describe("Archives a sub-agent this long after its last run ended; 0: never."),
    announce: z
      .enum(["post", "wake"])
      .default("post")
      .describe("post: a result is posted unchanged. wake: the requester's agent runs with it instead."),
  })
  .prefault({});

export const agentSandbox = z
  .strictObject(sandboxKeys)
  .partial()
  .describe("Default: agents.defaults.sandbox.");

export const agentSubagents = z.strictObject({
  allowAgents: texts.optional().describe("Default: agents.defaults.subagents.allowAgents."),
  model: modelName
    .nullish()
    .describe(
      "Model of sub-agents that run as this agent. Default: agents.defaults.subagents.model, else its own.",
    ),
});

/** Daily limits of an agent. */
export const budget = z.strictObject({
  dailyTokens: limit(1, MAX)
    .nullish()
    .describe(
      "Maximum tokens of an agent per day (UTC); above it, model calls are refused. Unset: no limit.",
    ),
  dailyCost: z
    .number()
    .positive("must be more than 0")
    .nullish()
    .describe(
      "Maximum cost of an agent per day (UTC), in USD; above it, model calls are refused. Unset: no limit.",
    ),
});

const attachments = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether files may be attached for a sub-agent."),
    maxFiles: limit(1, 1_000).default(50).describe("Maximum number of files of one spawn."),
    maxFileBytes: limit(1, 1024 ** 3)
      .default(1024 ** 2)
      .describe("Maximum size of one file, decoded."),
    maxTotalBytes: limit(1, 1024 ** 3)
      .default(5 * 1024 ** 2)
      .describe("Maximum size of all files of one spawn together, decoded."),
    retainOnSessionKeep: z
      .boolean()
      .default(false)
      .describe('With cleanup "keep": whether attachments remain until the session is deleted.'),
  })
  .prefault({});

/** A tool filter for some sessions, in addition to the other filters. */
export const moreTools = z.strictObject({ tools: toolFilter }).prefault({});

export const spawnTool = z.strictObject({ attachments }).prefault({});
