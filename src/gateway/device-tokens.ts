// Owns which device tokens are valid: creates their rows, and deletes the revoked ones.
// A token whose row was deleted is refused at connect, at every gateway of the store.

import type { ConnectParams } from "../contract/frames.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { deviceText } from "../core/text/label.ts";
import type { Engine } from "../engine/engine.ts";
import { dropDeviceTokens, holdSeries, putDeviceToken } from "../store/queries/device-tokens.ts";
import { type Authority, type Caller, CONNECT_ANEW, DEVICE_TOKEN_MS } from "./auth.ts";

const WORD_MAX_CHARS = 64;

/** Creates a new token for the connected device. Fails if its current token was revoked. */
export async function renewDeviceToken(
  { engine, authority }: { readonly engine: Pick<Engine, "commit">; readonly authority: Authority },
  caller: Caller,
  at: { readonly deviceId: string; readonly client: ConnectParams["client"] },
): Promise<Result<string | undefined>> {
  // A session's pass and an access token create no device tokens (AU5 and AU6 of src/gateway/auth.ts).
  if (caller.actsAs !== undefined || caller.accessToken !== undefined) return ok(undefined);
  const { deviceId, client } = at;
  const { displayName = client.id, platform } = client;
  return engine.commit(async (unit) => {
    const { device } = caller;
    if (device !== undefined && (await holdSeries(unit.tx, device)) !== device.series) {
      return fail("unauthorized", "the device token was revoked", { hint: CONNECT_ANEW });
    }
    const expiresAt = unit.now + DEVICE_TOKEN_MS;
    const series = await putDeviceToken(unit.tx, {
      deviceId,
      role: caller.role,
      series: unit.newId(),
      tokenId: caller.id,
      name: deviceText(displayName, WORD_MAX_CHARS, "device"),
      platform: deviceText(platform, WORD_MAX_CHARS, "unknown"),
      createdAt: unit.now,
      usedAt: unit.now,
      expiresAt,
    });
    await dropDeviceTokens(unit.tx, caller.id, unit.now);
    return ok(authority.deviceToken(caller, { deviceId, series, until: expiresAt }));
  });
}
