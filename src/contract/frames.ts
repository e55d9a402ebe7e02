// Lists the frames on a WebSocket: request, response, event, and the two that open a connection.
// A frame is one JSON object in one text message. Unknown frame types and binary messages are refused. Frames
// have the names of the OpenClaw gateway protocol, version 3: fields are added, none is renamed.

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
    {
      type: oneOf("req"),
      id: text("Id of the request. The answer has the same id."),
      method: text("Method, or `connect`."),
    },
    { params: about(anything, "Params of the method, as an object.") },
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
        "`code`: the detailed code ([ERRORS.md](ERRORS.md)). Other fields: facts about the failure.",
      ),
      retryable: flag("True if the same request can succeed later."),
      retryAfterMs: number("Time to wait before a retry, in ms."),
    },
  ),
);
export type WireError = Of<typeof WIRE_ERROR>;

export const RESPONSE_FRAME = named(
  "ResponseFrame",
  "The answer to the request with the same id. `agent` gets two answers.",
  object({ type: oneOf("res"), id: text(), ok: flag() }, { payload: anything, error: WIRE_ERROR }),
);
export type ResponseFrame = Of<typeof RESPONSE_FRAME>;

const STATE_VERSION = named(
  "StateVersion",
  "Version numbers of the presence list and of the health. Each change increases one of them.",
  object({ presence: number(), health: number("Version of the health.") }),
);
export type StateVersion = Of<typeof STATE_VERSION>;

export const EVENT_FRAME = named(
  "EventFrame",
  "An event from the gateway.",
  object(
    { type: oneOf("event"), event: text("Name of the event.") },
    {
      payload: anything,
      seq: number("Number of the event on its connection. Absent in `connect.challenge`."),
      stateVersion: STATE_VERSION,
    },
  ),
);
export type EventFrame = Of<typeof EVENT_FRAME>;

const words = list(text());

/** The params of `connect`. Other fields are allowed, because newer clients send more. */
export const CONNECT = openObject(
  {
    minProtocol: integer("Oldest protocol version that the client supports."),
    maxProtocol: integer(
      "Newest version that the client supports: 3 or 4. Version 4 ignores unknown params.",
    ),
    client: about(
      openObject(
        {
          id: about(name, "Id of the client program."),
          version: text("Version of the client program."),
          platform: text("Operating system, like linux."),
          mode: text("Kind of client, like cli or ui. Independent of `role`."),
        },
        {
          displayName: text("Name for people."),
          instanceId: text("Distinguishes instances of one program."),
        },
      ),
      "The client's description of itself. It does not affect the client's rights.",
    ),
  },
  {
    role: text("`operator` or `node`. Default: the role of the token."),
    scopes: about(words, "Limits the scopes of the connection. Default: all scopes of the token."),
    caps: about(
      words,
      "`text-deltas`: events have only the new part of an answer. `thinking-deltas`: thinking is sent " +
        "while a model writes it. A node lists its capabilities.",
    ),
    commands: about(words, "Only for nodes: the commands that the node accepts."),
    auth: about(
      openObject(
        {},
        {
          token: text("A token of the gateway."),
          deviceToken: text("The device token from an earlier connection of this device."),
          password: text("Another name for `token`."),
        },
      ),
      "Credentials. Exactly one of the fields is needed.",
    ),
    device: about(
      openObject(
        {
          id: about(name, "SHA-256 of the raw public key, in hex."),
          publicKey: text("The public key: the raw 32 bytes in base64url, or PEM."),
          signature: text("Ed25519 signature of the text that src/gateway/device.ts defines."),
          signedAt: number("Time of the signature, in ms since 1970."),
        },
        { nonce: text("Nonce from the challenge.") },
      ),
      "Proves that the client has the key of a device. Required for nodes.",
    ),
  },
);
export type ConnectParams = Of<typeof CONNECT>;
/** A client's description of itself. Any text is accepted. */
export type ClientInfo = ConnectParams["client"];
/** Proof of a device key: an Ed25519 signature over the challenge. */
export type DeviceProof = NonNullable<ConnectParams["device"]>;

/** A connected client, as other clients see it. */
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
    features: object(
      { methods: words, events: words },
      { capabilities: about(words, "Features that clients of version 4 look for.") },
    ),
    snapshot: object(
      {
        presence: list(PRESENCE_ENTRY),
        health: about(anything, "Result of `health`."),
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
      "Rights of this connection. `deviceToken` is present if a device signed the challenge.",
    ),
  }),
);
export type HelloOk = Of<typeof HELLO_OK>;
