// Lists the methods: the scope that each needs and its params, as JSON Schema. Compiled on first use
// (`validate.ts`).
// A method outside of this list doesn't exist; a param that is neither listed nor in `ignored` is an error.
// `ignored` are params of the OpenClaw method of that name without a meaning here: accepted, never read.

import type { XStatic } from "typebox/schema";
import { ACCESS_METHODS } from "./params/access.ts";
import { CHAIN_METHODS } from "./params/chains.ts";
import { CHANNEL_METHODS } from "./params/channels.ts";
import { CRON_METHODS } from "./params/cron.ts";
import { DELIVERY_METHODS } from "./params/deliveries.ts";
import { DEMO_METHODS } from "./params/demo.ts";
import { DEVICE_METHODS } from "./params/devices.ts";
import { NODE_METHODS } from "./params/nodes.ts";
import { OPERATION_METHODS, OVERVIEW_METHODS } from "./params/operations.ts";
import { SESSION_METHODS } from "./params/sessions.ts";
import { about, type MethodSpec, name } from "./params/shapes.ts";
import { TALK_METHODS } from "./params/talk.ts";
import { TOOL_METHODS } from "./params/tools.ts";

const words = { type: "array", items: { type: "string" } } as const;
const said = { type: "string" } as const;

function open<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: "object", properties, required } as const;
}

/** The params of `connect`; open, since newer clients add more. */
export const CONNECT = open(
  {
    minProtocol: about({ type: "integer" }, "The oldest version that the client speaks."),
    maxProtocol: about({ type: "integer" }, "The newest. The gateway speaks 3 and 4."),
    client: about(
      open(
        {
          id: about(name, "The program's id."),
          version: about(said, "The program's version."),
          platform: about(said, "Like linux."),
          mode: about(said, "Like cli, ui or node; a role of `node` comes from `role`."),
          displayName: about(said, "The name that people see."),
          instanceId: about(said, "Distinguishes instances of the same program."),
        },
        ["id", "version", "platform", "mode"],
      ),
      "The client's description of itself; none of it gives a right.",
    ),
    role: about(said, "operator or node. Default: the token's."),
    scopes: about(words, "Fewer than the token has. Default: all of them."),
    caps: about(
      words,
      "text-deltas: deltas of an answer have the new part, not the whole text. Of a node: its capabilities.",
    ),
    commands: about(words, "Of a node: the commands that it accepts."),
    auth: about(
      open(
        {
          token: about(said, "The token."),
          deviceToken: about(said, "The token that the gateway gave to this device."),
          password: about(said, "Another name for the token."),
        },
        [],
      ),
      "The credentials: one of the three.",
    ),
    device: about(
      open(
        {
          id: about(name, "SHA-256 of the raw public key, in hex."),
          publicKey: about(said, "The raw 32 bytes in base64url, or PEM."),
          signature: about(said, "Ed25519, over the text that src/gateway/device.ts names."),
          signedAt: about({ type: "number" }, "When (ms since 1970)."),
          nonce: about(said, "The nonce of the challenge."),
        },
        ["id", "publicKey", "signature", "signedAt"],
      ),
      "Proof of a device's key; required for nodes.",
    ),
  },
  ["minProtocol", "maxProtocol", "client"],
);

export const METHODS = {
  ...OVERVIEW_METHODS,
  ...SESSION_METHODS,
  ...TALK_METHODS,
  ...TOOL_METHODS,
  ...DELIVERY_METHODS,
  ...CHAIN_METHODS,
  ...ACCESS_METHODS,
  ...CHANNEL_METHODS,
  ...DEMO_METHODS,
  ...OPERATION_METHODS,
  ...CRON_METHODS,
  ...DEVICE_METHODS,
  ...NODE_METHODS,
} as const satisfies Record<string, MethodSpec>;

export type MethodName = keyof typeof METHODS;
export type ParamsOf<M extends MethodName> = XStatic<(typeof METHODS)[M]["params"]>;

export function isMethod(text: string): text is MethodName {
  return Object.hasOwn(METHODS, text);
}
