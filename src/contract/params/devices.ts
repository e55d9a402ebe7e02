// Owns the params of the methods about device tokens.

import { ADMIN, about, idempotencyKey, type MethodSpec, NOTHING, name, object } from "./shapes.ts";

export const DEVICE_METHODS = {
  "device.token.list": {
    scope: ADMIN,
    does: "Lists the devices that have a device token. For tokens that cover every session.",
    params: NOTHING,
    ignored: [],
  },
  "device.token.revoke": {
    scope: ADMIN,
    does: "Revokes the device tokens of one device. For tokens that cover every session.",
    params: object(
      {
        deviceId: about(name, "Which device."),
        role: about(
          { type: "string", enum: ["operator", "node"] },
          "Only its tokens of this role. Default: all.",
        ),
        idempotencyKey,
      },
      ["deviceId"],
    ),
    ignored: [],
  },
} as const satisfies Record<string, MethodSpec>;
