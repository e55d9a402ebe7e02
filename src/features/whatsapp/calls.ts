// Handles HTTP requests from the platform: the verification request and the webhooks.
// Nothing is read or changed before the caller is verified: by the configured verify token, or by a signature
// of the exact body. Both are compared in constant time.
// Messages in a webhook go to the account that has their phone number, if that account's app has signed the
// webhook. Messages for other numbers are ignored.
// The request is acknowledged after everything is stored (CH1 of channel.ts). After a failure the platform
// sends the request again, and messages that are stored already are recognised by their ids.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { PlatformAnswer, PlatformCall } from "../../channels/channel.ts";
import { jsonOf } from "../../core/json.ts";
import { type NumberNews, readWebHook } from "./incoming.ts";
import type { WhatsAppAccount } from "./whatsapp.ts";

const SIGNATURE = /^sha256=([0-9a-f]{64})$/i;
/** Matches valid challenges; the platform sends ten digits. */
const CHALLENGE = /^[\w.-]{1,256}$/;

const answer = (status: number, body: string): PlatformAnswer => ({ status, body });

function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

function isSigned({ header, body }: PlatformCall, { appSecret }: WhatsAppAccount): boolean {
  const given = SIGNATURE.exec(header("x-hub-signature-256")?.trim() ?? "")?.[1];
  if (given === undefined) return false;
  return timingSafeEqual(createHmac("sha256", appSecret).update(body).digest(), Buffer.from(given, "hex"));
}

/** Answers a request. `take` stores the messages that a webhook contains. */
export async function answerCall(
  call: PlatformCall,
  account: WhatsAppAccount,
  take: (news: readonly NumberNews[]) => Promise<void>,
): Promise<PlatformAnswer> {
  // The platform verifies the address once.
  if (call.method === "GET") {
    const challenge = call.query.get("hub.challenge") ?? "";
    const isOurs = isSame(call.query.get("hub.verify_token") ?? "", account.verifyToken);
    if (call.query.get("hub.mode") !== "subscribe" || !isOurs) return answer(403, "not accepted");
    return CHALLENGE.test(challenge) ? answer(200, challenge) : answer(400, "no challenge");
  }
  if (!isSigned(call, account)) return answer(401, "not accepted");
  const body = jsonOf(call.body);
  if (body === undefined) return answer(400, "not JSON");
  await take(readWebHook(body));
  return answer(200, "ok");
}
