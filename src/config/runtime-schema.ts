// Owns the keys of the configuration file about what runs an agent: our own loop, or a program over ACP.

import { z } from "zod";
import { PERMISSION_POLICIES } from "../core/settings.ts";
import { DAY_SECONDS, limit, path } from "./fields.ts";

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const withoutNul = (value: string): boolean => !value.includes("\0");

export const runtime = z
  .strictObject({
    type: z
      .enum(["builtin", "subagent", "acp"])
      .default("builtin")
      .describe(
        "acp: a program that speaks the Agent Client Protocol on its standard streams. subagent: builtin.",
      ),
    command: z
      .array(z.string().refine(withoutNul, "must have no NUL in it"))
      .default([])
      .describe("The program and its arguments. Needed for acp; no shell reads it."),
    env: z
      .record(
        z.string().regex(ENV_NAME, "must be letters, digits and _"),
        z.string().refine(withoutNul, "must have no NUL in it"),
      )
      .default({})
      .describe("Its environment, besides PATH, HOME and a few like them. Keys it needs must stand here."),
    cwd: path.optional().describe("Where it works. Default: the agent's workspace."),
    permissions: z
      .enum(PERMISSION_POLICIES)
      .default("deny")
      .describe("The answer when it asks whether it may do something; ask: an operator gives it."),
    askSeconds: limit(1, DAY_SECONDS)
      .default(300)
      .describe("With permissions ask: what nobody has answered by then is denied."),
    sessionTools: z
      .boolean()
      .default(true)
      .describe("Whether it gets the session tools, through an MCP server that it starts."),
    idleMinutes: limit(0, 1_440)
      .default(10)
      .describe("How long a program without work is kept, for each session; 0: not at all."),
  })
  .describe("What runs the agent.");
