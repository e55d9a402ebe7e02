// Owns the methods about device tokens.
// They list every token's devices, so they need a token that covers every session.

import type { DEVICE_METHODS } from "../../../contract/methods/devices.ts";
import { fail, ok } from "../../../core/shapes/errors.ts";
import { quoted } from "../../../core/text/cut.ts";
import { deleteDeviceTokens, listDeviceTokens } from "../../../store/queries/device-tokens.ts";
import type { Caller } from "../../auth.ts";
import { type BasicDeps, commitAnswer, type Methods } from "../../call.ts";

export interface DeviceDeps extends BasicDeps {
  /**
   * Closes the connections that this device's tokens opened. If `role` is absent, connections of every role
   * are closed.
   */
  endDevice?(deviceId: string, role?: Caller["role"]): void;
}

export const deviceMethods: Methods<Extract<keyof typeof DEVICE_METHODS, `device.${string}`>, DeviceDeps> = {
  "device.token.list": {
    async handle({ deps }) {
      const { engine, world } = deps;
      const ts = engine.now();
      const rows = await listDeviceTokens(engine.store.db, ts);
      const devices = rows.map(({ deviceId, name, platform, role, createdAt, usedAt, expiresAt }) => ({
        deviceId,
        displayName: world.redactor.mask(name),
        platform,
        role,
        createdAtMs: createdAt,
        lastUsedAtMs: usedAt,
        expiresAtMs: expiresAt,
      }));
      return ok({ ts, devices });
    },
  },
  "device.token.revoke": {
    async handle(ctx, { deviceId: wanted, role }) {
      const deviceId = wanted.trim().toLowerCase();
      return commitAnswer(ctx, async (unit) => {
        if (!(await deleteDeviceTokens(unit.tx, deviceId, role))) {
          const whose = `the device ${quoted(wanted, 80)}`;
          const what = role === undefined ? "no device token" : `no device token of role ${role}`;
          return fail("invalid_argument", `${whose} has ${what}`, {
            hint: "device.token.list lists the devices with a token.",
          });
        }
        unit.after(() => ctx.deps.endDevice?.(deviceId, role));
        return ok({ ok: true, deviceId, revokedAtMs: unit.now });
      });
    },
  },
};
