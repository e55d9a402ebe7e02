// Owns what the methods about device tokens answer.

/** A device that has a token of this role. */
export interface DeviceTokenEntry {
  readonly deviceId: string;
  /** The name that the client's program gave itself. */
  readonly displayName: string;
  readonly platform: string;
  readonly role: "operator" | "node";
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number;
  readonly expiresAtMs: number;
}

export interface DevicePayloads {
  /** The last seen first. */
  "device.token.list": { readonly ts: number; readonly devices: readonly DeviceTokenEntry[] };
  "device.token.revoke": { readonly ok: true; readonly deviceId: string; readonly revokedAtMs: number };
}
