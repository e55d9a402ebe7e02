// Owns the answers of the methods about device tokens.

/** A device that has a token of this role. */
export interface DeviceTokenEntry {
  readonly deviceId: string;
  /** The name that the client sent. */
  readonly displayName: string;
  readonly platform: string;
  readonly role: "operator" | "node";
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number;
  readonly expiresAtMs: number;
}

export interface DevicePayloads {
  /** Most recently seen first. */
  "device.token.list": { readonly ts: number; readonly devices: readonly DeviceTokenEntry[] };
  "device.token.revoke": { readonly ok: true; readonly deviceId: string; readonly revokedAtMs: number };
}
