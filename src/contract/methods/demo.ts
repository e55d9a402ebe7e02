// Defines the methods for the demo.

import { flag, named, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, type MethodSpec, NOTHING } from "./parts.ts";

const DEMO_ADDRESS = named(
  "DemoAddress",
  "The path of the demo's WebSocket on this gateway's port, and the token for it.",
  object({ path: text(), token: text() }),
);
export type DemoAddress = Of<typeof DEMO_ADDRESS>;

export const DEMO_METHODS = {
  "demo.start": {
    scope: ADMIN,
    everySession: true,
    summary: "Starts a second gateway in this process, with three agents, a temporary store and no model.",
    params: NOTHING,
    result: DEMO_ADDRESS,
    errors: ["unknown_method"],
  },
  "demo.stop": {
    scope: ADMIN,
    everySession: true,
    summary: "Stops the demo. Without this call, it stops five minutes after the last client disconnected.",
    params: NOTHING,
    result: object({ ok: oneOf(true), stopped: flag() }),
    errors: ["unknown_method"],
  },
} as const satisfies Record<string, MethodSpec>;
