// Seals the buttons of notifications. A button stands for one decision about one request and works until the
// request expires. The request is decided once (PD2 of flows/permission.ts), so no button works twice.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { PermissionDecision } from "../../core/shapes/permission.ts";

export interface Button {
  readonly requestId: string;
  readonly decision: PermissionDecision;
  /** The device, or `ntfy`, to which the button was sent. The button has its rights. */
  readonly to: string;
  /** ms since 1970. */
  readonly until: number;
}

const sealOf = (key: Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Returns the token of a button. */
export function sealButton(key: Buffer, { requestId, decision, to, until }: Button): string {
  const text = Buffer.from(JSON.stringify([requestId, decision, to, until])).toString("base64url");
  return `${text}.${sealOf(key, text).toString("base64url")}`;
}

/** Returns the button of a token, or undefined if this gateway did not make it, or it has expired. */
export function readButton(key: Buffer, token: string, nowMs: number): Button | undefined {
  const [text = "", mark = ""] = token.split(".");
  const [given, wanted] = [Buffer.from(mark, "base64url"), sealOf(key, text)];
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
  const [requestId, decision, to, until] = JSON.parse(Buffer.from(text, "base64url").toString()) as [
    string,
    PermissionDecision,
    string,
    number,
  ];
  return nowMs < until ? { requestId, decision, to, until } : undefined;
}
