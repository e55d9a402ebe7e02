// Lists the methods: the scope that each needs and its params, as JSON Schema. Compiled on first use
// (`check.ts`).
// A method outside of this list doesn't exist; a param that is neither listed nor in `ignored` is an error.
// `ignored` are params of the OpenClaw method of that name without a meaning here: accepted, never read.

import { ACCESS_METHODS } from "./methods/access.ts";
import { CHAIN_METHODS } from "./methods/chains.ts";
import { CHANNEL_METHODS } from "./methods/channels.ts";
import { CRON_METHODS } from "./methods/cron.ts";
import { DELIVERY_METHODS } from "./methods/deliveries.ts";
import { DEMO_METHODS } from "./methods/demo.ts";
import { DEVICE_METHODS } from "./methods/devices.ts";
import { NODE_METHODS } from "./methods/nodes.ts";
import { OPERATION_METHODS, OVERVIEW_METHODS } from "./methods/operations.ts";
import { type MethodSpec, name } from "./methods/parts.ts";
import { SESSION_METHODS } from "./methods/sessions.ts";
import { TALK_METHODS } from "./methods/talk.ts";
import { TOOL_METHODS } from "./methods/tools.ts";
import { about, integer, list, number, type Of, openObject, text } from "./schema.ts";

const words = list(text());
const said = text();

/** The params of `connect`; open, since newer clients add more. */
export const CONNECT = openObject(
  {
    minProtocol: about(integer(), "The oldest version that the client speaks."),
    maxProtocol: about(integer(), "The newest. The gateway speaks 3 and 4."),
    client: about(
      openObject(
        {
          id: about(name, "The program's id."),
          version: about(said, "The program's version."),
          platform: about(said, "Like linux."),
          mode: about(said, "Like cli, ui or node; a role of `node` comes from `role`."),
        },
        {
          displayName: about(said, "The name that people see."),
          instanceId: about(said, "Distinguishes instances of the same program."),
        },
      ),
      "The client's description of itself; none of it gives a right.",
    ),
  },
  {
    role: about(said, "operator or node. Default: the token's."),
    scopes: about(words, "Fewer than the token has. Default: all of them."),
    caps: about(
      words,
      "text-deltas: deltas of an answer have the new part, not the whole text. Of a node: its capabilities.",
    ),
    commands: about(words, "Of a node: the commands that it accepts."),
    auth: about(
      openObject(
        {},
        {
          token: about(said, "The token."),
          deviceToken: about(said, "The token that the gateway gave to this device."),
          password: about(said, "Another name for the token."),
        },
      ),
      "The credentials: one of the three.",
    ),
    device: about(
      openObject(
        {
          id: about(name, "SHA-256 of the raw public key, in hex."),
          publicKey: about(said, "The raw 32 bytes in base64url, or PEM."),
          signature: about(said, "Ed25519, over the text that src/gateway/device.ts names."),
          signedAt: about(number(), "When (ms since 1970)."),
        },
        { nonce: about(said, "The nonce of the challenge.") },
      ),
      "Proof of a device's key; required for nodes.",
    ),
  },
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

/** Returns a method's entry. */
export function methodOf(name: MethodName): MethodSpec {
  return METHODS[name];
}

/** The params of a method. */
export type ParamsOf<M extends MethodName> = Of<(typeof METHODS)[M]["params"]>;

export function isMethod(text: string): text is MethodName {
  return Object.hasOwn(METHODS, text);
}
