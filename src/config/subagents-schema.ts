// Owns the keys of the configuration file about sub-agents and the sandbox.

import { z } from "zod";
import { SANDBOX_BACKENDS, SANDBOX_GIT, SANDBOX_MODES } from "../core/settings.ts";
import { DAY_SECONDS, limit, MAX, modelName, optionalText, texts, toolFilter } from "./fields.ts";

const sandboxKeys = {
  mode: z
    .enum(SANDBOX_MODES)
    .describe("Which sessions have their tool calls contained; non-main: all but main sessions."),
  sessionToolsVisibility: z
    .enum(["spawned", "all"])
    .describe("What a sandboxed session sees at most: its own tree (spawned) or what its visibility allows."),
  network: z.boolean().describe("Whether contained commands reach the network."),
  backend: z.enum(SANDBOX_BACKENDS).describe("auto: bubblewrap where it works, else docker."),
  memoryMb: limit(64, 1024 ** 2).describe("Memory of one call, all its processes together."),
  processesMax: limit(8, 32_768).describe("Processes and threads of one call."),
  diskMb: limit(16, 1024 ** 2).describe("What the workspace may hold, and temporary files again as much."),
  git: z
    .enum(SANDBOX_GIT)
    .describe(
      "What contained commands may do to the workspace's .git. Default: read; " +
        "write where mode is all and no workspace is named.",
    ),
  image: optionalText.describe("For docker: the image that commands run in. Default: a small Linux."),
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
    allowAgents: texts.default([]).describe('Agent ids it may spawn besides its own; `"*"`: any.'),
    model: modelName.nullish().describe("Default: the agent's own."),
    maxConcurrent: limit(1, 1_000)
      .default(8)
      .describe("Sub-agents that execute at once; others wait in order."),
    maxChildren: limit(1, 10_000)
      .default(20)
      .describe("Unfinished sub-agents of one session; over it, a spawn is an error."),
    maxSpawnDepth: limit(1, 5).default(1).describe("1: a sub-agent can't spawn; 2: its children can't; …"),
    runTimeoutSeconds: limit(0, 30 * DAY_SECONDS)
      .default(0)
      .describe("Aborts a sub-agent this long after it started executing; 0: never."),
    archiveAfterMinutes: limit(0, 525_600)
      .default(60)
      .describe("Hides a sub-agent this long after its last run ended; 0: never."),
    announce: z
      .enum(["post", "wake"])
      .default("post")
      .describe("post: a result is posted as it is. wake: the requester's agent is run on it instead."),
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
    .describe("Of sub-agents that are this agent. Default: agents.defaults.subagents.model, else its own."),
});

/** What an agent may use in a day. */
export const budget = z.strictObject({
  dailyTokens: limit(1, MAX)
    .nullish()
    .describe(
      "Tokens in a day (UTC) of all its sessions; a model call that does not fit is not made. Unset: none.",
    ),
  dailyCost: z
    .number()
    .positive("must be more than 0")
    .nullish()
    .describe(
      "USD in a day (UTC) of all its sessions; a model call that does not fit is not made. Unset: none.",
    ),
});

const attachments = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether files may be given to a sub-agent."),
    maxFiles: limit(1, 1_000).default(50).describe("Files of one spawn."),
    maxFileBytes: limit(1, 1024 ** 3)
      .default(1024 ** 2)
      .describe("Of one file, decoded."),
    maxTotalBytes: limit(1, 1024 ** 3)
      .default(5 * 1024 ** 2)
      .describe("Of all files of one spawn, decoded."),
    retainOnSessionKeep: z
      .boolean()
      .default(false)
      .describe('Whether, with cleanup "keep", they stay until the session is deleted.'),
  })
  .prefault({});

/** A second filter, for some sessions only. */
export const moreTools = z.strictObject({ tools: toolFilter }).prefault({});

export const spawnTool = z.strictObject({ attachments }).prefault({});
