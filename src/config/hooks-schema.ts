// Owns the keys of the configuration file about programs that are told of events.

import { z } from "zod";
import { HOOK_EVENTS } from "../core/settings.ts";
import { texts } from "./fields.ts";

/** Hooks of one gateway. */
const HOOKS_MAX = 32;

const outgoing = z.strictObject({
  name: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, ., _ and -")
    .optional()
    .describe("What the outbox calls it. Default: the address's host and a number made of the address."),
  url: z
    .url({ protocol: /^https?$/ })
    .refine((value) => !/^\w+:\/\/[^/?#]*@/.test(value), "must hold no user and password")
    .describe("Gets a POST for each event. Redirects are not followed."),
  events: z.array(z.enum(HOOK_EVENTS)).min(1, "must name at least one event").describe("Which ones."),
  secret: z
    .string()
    .min(16, "must have at least 16 characters")
    .describe("Signs each request (HMAC-SHA256). whsec_ and base64: those bytes; else the text itself."),
  sessions: texts.optional().describe("Key patterns with `*`. Unset: every session."),
  enabled: z.boolean().default(true),
});

export const outgoingHooks = z
  .array(outgoing)
  .max(HOOKS_MAX)
  .default([])
  .describe("Programs that are told of events.");

export type OutgoingInFile = z.output<typeof outgoing>;
