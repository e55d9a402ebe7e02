// People for the tests of Signal, and their messages in the format of the signal-cli daemon.

import type { AccountSettings } from "../../../src/core/shapes/settings/channels.ts";
import { OPEN_ACCOUNT } from "./open-account.ts";

export const OWN = { number: "+491700000001", aci: "11111111-1111-4111-8111-111111111111" };
export const ADA = { number: "+491700000002", aci: "22222222-2222-4222-8222-222222222222" };
export const GROUP = Buffer.from("a group of thirty-two bytes, yes").toString("base64");

export function signalAccount(url: string, more: Partial<AccountSettings & typeof OWN> = {}) {
  return { ...OPEN_ACCOUNT, channel: "signal", number: OWN.number, url, ...more };
}

/** Returns the sender fields of a message in the daemon's format. */
export function from(who: { number: string | null; aci: string }, name = "Ada") {
  const source = who.number ?? who.aci;
  return { source, sourceNumber: who.number, sourceUuid: who.aci, sourceName: name, sourceDevice: 1 };
}

let clock = 1_767_225_600_000;

/** Returns a data message, dated one second after the previous one. */
export function dataOf(text: string | null, more: object = {}) {
  clock += 1_000;
  return { timestamp: clock, message: text, expiresInSeconds: 0, viewOnce: false, ...more };
}

export function newestTime(): number {
  return clock;
}
