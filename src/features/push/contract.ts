// Defines the methods for the devices that are notified, and the body of the answer of a button.

import type { BodySpec } from "../../contract/bodies.ts";
import { idempotencyKey, type MethodSpec, name, READ, WRITE } from "../../contract/methods/parts.ts";
import { about, flag, list, named, number, type Of, object, oneOf, text } from "../../contract/schema.ts";

const ENDPOINT_MAX_CHARS = 2_048;
const KEY_MAX_CHARS = 128;

const PUSH_DEVICE = named(
  "PushDevice",
  "A browser that is told what needs its owner.",
  object({
    id: text("Beginning of the SHA-256 hash of its address at the push service, in hex."),
    name: text(),
    service: text("Host of the browser's push service."),
    createdAt: number("In ms since 1970."),
    own: flag("True if this caller's token added it."),
  }),
);
export type PushDeviceRow = Of<typeof PUSH_DEVICE>;

const deviceId = about(name, "Id of the device.");

export const PUSH_METHODS = {
  "push.list": {
    scope: READ,
    summary: "Lists the devices that are notified: the caller's, or all for tokens with all rights.",
    params: object({}),
    result: object({
      key: text("The gateway's public key, which a browser needs to subscribe, in base64url."),
      devices: list(PUSH_DEVICE, "Oldest first."),
      ntfy: flag("True if `push.ntfy` is configured."),
    }),
  },
  "push.subscribe": {
    scope: WRITE,
    summary: "Adds a browser, or replaces its subscription. It is notified with the rights of this token.",
    params: object(
      {
        endpoint: text("Address at the push service.", { minLength: 1, maxLength: ENDPOINT_MAX_CHARS }),
        p256dh: text("Public key of the browser, in base64url.", { maxLength: KEY_MAX_CHARS }),
        auth: text("Secret of the subscription, in base64url.", { maxLength: KEY_MAX_CHARS }),
        name: about(name, "Name of the device, for people."),
      },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), id: text() }),
    errors: ["address_denied", "too_large", "unauthorized"],
  },
  "push.remove": {
    scope: WRITE,
    summary: "Removes a device. Its notifications end, and their buttons do nothing any more.",
    params: object({ id: deviceId }, { idempotencyKey }),
    result: object({ ok: oneOf(true), id: text() }),
    errors: ["pairing_not_found"],
  },
  "push.test": {
    scope: WRITE,
    summary: "Sends a notification to a device, or to `ntfy`.",
    params: object({ id: deviceId }),
    result: object({ ok: oneOf(true), id: text() }),
    errors: ["pairing_not_found", "queue_full"],
  },
} as const satisfies Record<string, MethodSpec>;

export const PUSH_BODIES = {
  "POST /push/answer": {
    summary: "Answers a permission request for the button of a notification. Works once, until it expires.",
    body: object({ token: text("The token of the button.", { minLength: 1 }) }),
    result: object({ ok: oneOf(true), decision: oneOf("allow", "deny") }),
  },
} as const satisfies Record<`POST /${string}`, BodySpec>;
