// Lists the frames on a WebSocket: request, response, event, and the two that open a connection.
// A frame is one JSON object in one text message; unknown frame types and binary messages are refused.
// Names are those of the OpenClaw gateway protocol, version 3; fields are added, none is renamed.

import type { RpcCode } from "../core/shapes/errors.ts";
import { name } from "./methods/parts.ts";
import {
  about,
  anything,
  declared,
  flag,
  integer,
  list,
  mapOf,
  named,
  number,
  type Of,
  object,
  oneOf,
  openObject,
  text,
} from "./schema.ts";

export const REQUEST_FRAME = named(
  "RequestFrame",
  "A call of a method. Clients send no other frame.",
  object(
    { type: oneOf("req"), id: text("The answer has it, too."), method: text("Its name, or `connect`.") },
    { params: about(anything, "An object.") },
  ),
);
export type RequestFrame = Of<typeof REQUEST_FRAME>;

const WIRE_ERROR = named(
  "WireError",
  "A failure in a response.",
  object(
    { code: declared<RpcCode>("RpcCode"), message: text() },
    {
      details: about(
        mapOf(anything),
        "`code`: the detailed code ([ERRORS.md](ERRORS.md)). The rest: facts of that failure.",
      ),
      retryable: flag("The same request may succeed later."),
      retryAfterMs: number("The earliest time for a retry."),
    },
  ),
);
export type WireError = Of<typeof WIRE_ERROR>;

export const RESPONSE_FRAME = named(
  "ResponseFrame",
  "The answer to the request with this id. `agent` is answered twice.",
  object({ type: oneOf("res"), id: text(), ok: flag() }, { payload: anything, error: WIRE_ERROR }),
);
export type ResponseFrame = Of<typeof RESPONSE_FRAME>;

const STATE_VERSION = named(
  "StateVersion",
  "Rises with each change of presence and health.",
  object({ presence: number(), health: number("The version of the health.") }),
);
export type StateVersion = Of<typeof STATE_VERSION>;

export const EVENT_FRAME = named(
  "EventFrame",
  "An event, as the gateway sends it.",
  object(
    { type: oneOf("event"), event: text("Its name.") },
    {
      payload: anything,
      seq: number("Rises by one with each event of a connection; absent on `connect.challenge`."),
      stateVersion: STATE_VERSION,
    },
  ),
);
export type EventFrame = Of<typeof EVENT_FRAME>;

const words = list(text());

/** The params of `connect`; open, since newer clients add more. */
export const CONNECT = openObject(
  {
    minProtocol: integer("The oldest version that the client speaks."),
    maxProtocol: integer("The newest version that it speaks. The gateway speaks 3 and 4."),
    client: about(
      openObject(
        {
          id: about(name, "The program's id."),
          version: text("The program's version."),
          platform: text("Like linux."),
          mode: text("The kind of client, like cli or ui. Not its role: see `role`."),
        },
        {
          displayName: text("The name that people see."),
          instanceId: text("Distinguishes instances of the same program."),
        },
      ),
      "The client's description of itself; none of it gives a right.",
    ),
  },
  {
    role: text("operator or node. Default: the token's."),
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
          token: text("The token."),
          deviceToken: text("The token that the gateway gave to this device."),
          password: text("Another name for the token."),
        },
      ),
      "The credentials: one of the three.",
    ),
    device: about(
      openObject(
        {
          id: about(name, "SHA-256 of the raw public key, in hex."),
          publicKey: text("The raw 32 bytes in base64url, or PEM."),
          signature: text("Ed25519, over the text that src/gateway/device.ts names."),
          signedAt: number("When (ms since 1970)."),
        },
        { nonce: text("The nonce of the challenge.") },
      ),
      "Proof of a device's key; required for nodes.",
    ),
  },
);
export type ConnectParams = Of<typeof CONNECT>;
/** A client's description of itself; every string is accepted. */
export type ClientInfo = ConnectParams["client"];
/** Proof of a device key: an Ed25519 signature over the challenge. */
export type DeviceProof = NonNullable<ConnectParams["device"]>;

/** A connected client, as others see it. */
export const PRESENCE_ENTRY = named(
  "PresenceEntry",
  "A connected client.",
  object(
    { connId: text(), clientId: text(), version: text(), platform: text(), mode: text(), ts: number() },
    { host: text(), instanceId: text() },
  ),
);
export type PresenceEntry = Of<typeof PRESENCE_ENTRY>;

export const HELLO_OK = named(
  "HelloOk",
  "The payload of the answer to `connect`.",
  object({
    type: oneOf("hello-ok"),
    protocol: number(),
    server: object({ version: text(), host: text(), connId: text() }),
    features: object({ methods: words, events: words }),
    snapshot: object(
      {
        presence: list(PRESENCE_ENTRY),
        health: about(anything, "The answer of `health`."),
        stateVersion: STATE_VERSION,
        uptimeMs: number(),
        sessionDefaults: object({
          defaultAgentId: text(),
          mainKey: text(),
          mainSessionKey: text(),
          scope: text(),
        }),
      },
      { configPath: text(), stateDir: text() },
    ),
    policy: object({ maxPayload: number(), maxBufferedBytes: number(), tickIntervalMs: number() }),
    auth: about(
      object({ role: text(), scopes: words }, { deviceToken: text() }),
      "The rights of this connection; `deviceToken` only when a device signed the challenge.",
    ),
  }),
);
export type HelloOk = Of<typeof HELLO_OK>;
