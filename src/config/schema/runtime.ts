// Defines the schema of agent runtimes in the configuration file: the built-in loop, a program over ACP, or
// an agent over A2A.

import { z } from "zod";
import { PERMISSION_POLICIES } from "../../core/shapes/settings/settings.ts";
import { DAY_SECONDS, httpAddress, limit, optionalText, path, text } from "./fields.ts";

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const withoutNul = (value: string): boolean => !value.includes("\0");

export const runtime = z
  .strictObject({
    type: z
      .enum(["builtin", "subagent", "acp", "a2a"])
      .default("builtin")
      .describe(
        "acp: an outside program that speaks the Agent Client Protocol. a2a: an agent elsewhere that is " +
          "reached over A2A. subagent: the same as builtin.",
      ),
    command: z
      .array(z.string().refine(withoutNul, "must not contain NUL"))
      .default([])
      .describe("The program and its arguments. Required for acp; no shell is involved."),
    env: z
      .record(
        z.string().regex(ENV_NAME, "must be letters, digits and _"),
        z.string().refine(withoutNul, "must not contain NUL"),
      )
      .default({})
      .describe(
        "The program's environment, in addition to PATH, HOME and a few others. List its API keys here.",
      ),
    cwd: path.optional().describe("Working folder. Default: the agent's workspace."),
    permissions: z
      .enum(PERMISSION_POLICIES)
      .default("deny")
      .describe(
        "Answer to the program's permission requests; ask: an operator decides. With ask and deny, a known " +
          "program is put into the mode in which it asks.",
      ),
    askSeconds: limit(1, DAY_SECONDS)
      .default(300)
      .describe("With permissions ask: requests without an answer are denied after this time."),
    sessionTools: z
      .boolean()
      .default(true)
      .describe("Whether the program gets the session tools, through an MCP server that it starts."),
    idleMinutes: limit(0, 1_440)
      .default(10)
      .describe("Time after which an idle program is stopped, for each session; 0: immediately."),
    card: httpAddress("token")
      .optional()
      .describe("Required for a2a: the address of the agent's card, or of its folder. May be private."),
    token: optionalText.describe("For a2a: bearer token that is sent to the agent."),
    key: text
      .optional()
      .describe(
        "For a2a: thumbprint of the key that must sign the card: `kid` in a gateway's `/a2a/jwks.json`.",
      ),
    allowUnsigned: z
      .boolean()
      .default(false)
      .describe("For a2a: whether a card that is not signed is used. Set it if the agent signs none."),
  })
  .describe("The runtime of the agent.");
