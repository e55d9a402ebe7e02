// Owns the methods about tokens of devices and of joined windows.

import { about, list, named, number, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NOTHING, name, READ, WRITE } from "./parts.ts";

const DEVICE_TOKEN = named(
  "DeviceTokenEntry",
  "A device token: the device, and the role of the token.",
  object({
    deviceId: text(),
    displayName: text("Name of the device, as its client sent it."),
    platform: text(),
    role: oneOf("operator", "node"),
    createdAtMs: number(),
    lastUsedAtMs: number(),
    expiresAtMs: number(),
  }),
);

export const DEVICE_METHODS = {
  "device.token.list": {
    scope: READ,
    everySession: true,
    summary: "Lists the devices that have a device token.",
    params: NOTHING,
    result: about(
      object({ ts: number(), devices: list(DEVICE_TOKEN) }),
      "The devices, most recently seen first.",
    ),
  },
  "device.token.revoke": {
    scope: ADMIN,
    everySession: true,
    part: "operator.pairing",
    summary: "Revokes the device tokens of one device.",
    params: object(
      { deviceId: about(name, "Id of the device.") },
      {
        role: about(
          oneOf("operator", "node"),
          "Revokes only tokens of this role. Default: all tokens of the device.",
        ),
        idempotencyKey,
      },
    ),
    result: object({ ok: oneOf(true), deviceId: text(), revokedAtMs: number() }),
  },
  "session.token.revoke": {
    scope: WRITE,
    summary:
      "Revokes the tokens that `npx parley-gateway join` made for the windows of one program in one folder.",
    params: object(
      { series: about(name, "Random id that these tokens of the program share.") },
      { idempotencyKey },
    ),
    result: object({ ok: oneOf(true), series: text(), revokedAtMs: number() }),
  },
} as const satisfies Record<string, MethodSpec>;
