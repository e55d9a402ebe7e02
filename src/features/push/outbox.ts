// Notifies people of what needs them: writes one outbox row for each need and device, in the transaction that
// caused the need, and sends it by Web Push or to an ntfy server.
// PU1: a need is stored if and only if its cause is. Each attempt checks that the need is still open, and
//      that its reader may still see it.
// PU2: an attempt can be repeated, because a second notification about a need replaces the first one: by
//      `Topic` at the push service, by its tag in the browser, by `sequence_id` at ntfy.
// PU3: an ntfy server can read what it gets, so the settings say how much that is. A push service can't.
// PU4: no log, error or row contains the address of a device or the token of a button.

import { createHash, type JsonWebKey } from "node:crypto";
import type { Channel } from "../../channels/channel.ts";
import { postNews } from "../../channels/programs.ts";
import { once } from "../../core/once.ts";
import type { PermissionDecision } from "../../core/shapes/permission.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Recorder, Unit } from "../../engine/unit.ts";
import type { OutboxParts } from "../../feature.ts";
import { insertDelivery } from "../../store/queries/channels/deliveries.ts";
import { countWaiting } from "../../store/queries/channels/hook-backlog.ts";
import { openPermissions } from "../../store/queries/permissions.ts";
import { endsOf } from "../../store/queries/runs/run-facts.ts";
import { sealButton } from "./answer.ts";
import { decisionsOf, type Need, needOf, titleOf, WHOLE_MAX_CHARS } from "./need.ts";
import { NTFY, type Reader, readerAt } from "./rights.ts";
import { deleteDevice, listDevices, type PushDevice, pushKey, sealingKey } from "./store.ts";
import { encryptFor, vapidHeader } from "./web-push.ts";

const PUSH = "push";
/** Maximum number of notifications that wait for one device. */
const WAITING_MAX = 100;
/** Time after which a failure or a question is no news any more. */
const NEWS_MS = 6 * 3_600_000;
const BUTTON_WORDS: Readonly<Record<PermissionDecision, string>> = { allow: "Allow once", deny: "Deny" };
/** ntfy's highest and default priority. */
const PRIORITY = { permission: 5, other: 3 } as const;

const routeTo = (to: string): Route => ({ channel: PUSH, to });

export const routes = ({ push }: Settings): readonly Route[] =>
  push.ntfy === undefined ? [] : [routeTo(NTFY)];

/** Queues a notification. Returns false if too many wait for the device. */
export async function queueNeed(unit: Unit, to: string, sessionKey: string, need: Need): Promise<boolean> {
  const route = routeTo(to);
  if ((await countWaiting(unit.tx, route, WAITING_MAX)) >= WAITING_MAX) return false;
  const { kind, ref } = need;
  await insertDelivery(unit.tx, {
    ...{ id: unit.newId(), sessionKey, kind: "hook", route, state: "pending", createdAt: unit.now },
    ...{ text: JSON.stringify(need), ...(kind === "failure" || kind === "question" ? { runId: ref } : {}) },
  });
  unit.lookAtDates();
  return true;
}

/** Returns the function that queues notifications of the needs that a transaction has caused. */
export function createRecorder(settings: Settings, drop: (program: string) => void): Recorder {
  return async (unit, events) => {
    for (const event of events) {
      const need = needOf(event, unit.now);
      if (need === undefined || !settings.push.needs.some((kind) => kind === need.kind)) continue;
      const devices = (await listDevices(unit.tx)).map(({ id }) => id);
      for (const to of settings.push.ntfy === undefined ? devices : [...devices, NTFY])
        if (!(await queueNeed(unit, to, event.sessionKey, need))) unit.after(() => drop(PUSH));
    }
  };
}

/** One notification for one reader. */
interface Notice {
  readonly need: Need;
  readonly text: string;
  readonly buttons: readonly { readonly decision: PermissionDecision; readonly token: string }[];
}

/** Returns why nobody needs a notification any more. */
async function whyOver({ db, world }: OutboxParts, need: Need): Promise<string | undefined> {
  const now = world.clock.now();
  if (need.kind === "test") return undefined;
  if (need.kind === "permission") {
    const open = await openPermissions(db, now);
    return open.some(({ id }) => id === need.ref) ? undefined : "the request was answered or has expired";
  }
  if (now - need.since > NEWS_MS) return "it is too old";
  const end = (await endsOf(db, [need.ref])).get(need.ref);
  return end?.open === true ? undefined : "it was retried, dismissed or deleted";
}

function ntfyRequest({ push }: Settings, { need, text, buttons }: Notice) {
  const { url = "", topic, token } = push.ntfy ?? {};
  const page = push.url?.replace(/\/*$/, "");
  const actions = buttons.map((button) => ({
    ...{ action: "http", label: BUTTON_WORDS[button.decision], method: "POST", clear: true },
    ...{ url: `${page}/push/answer`, headers: { "content-type": "application/json" } },
    body: JSON.stringify({ token: button.token }),
  }));
  const body = {
    ...{ topic, title: titleOf(need), message: text, sequence_id: topicOf(need) },
    priority: need.kind === "permission" ? PRIORITY.permission : PRIORITY.other,
    ...(page === undefined ? {} : { click: `${page}/#/inbox?at=${encodeURIComponent(need.item)}`, actions }),
  };
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { url, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}

/** Returns a short name of a need. Equal names replace each other; at most 32 letters are allowed. */
const topicOf = ({ item }: Need): string =>
  createHash("sha256").update(item).digest("base64url").slice(0, 32);

function webPushRequest(
  { settings, world }: OutboxParts,
  key: JsonWebKey,
  { device, notice }: { device: PushDevice; notice: Notice },
) {
  const { need, text, buttons } = notice;
  const { endpoint, p256dh, auth } = device;
  const nowMs = world.clock.now();
  const salt = Buffer.from(world.ids.uuid().replaceAll("-", ""), "hex");
  const leftMs = (need.expiresAt ?? nowMs + NEWS_MS) - nowMs;
  const shown = {
    ...{ tag: need.item, title: titleOf(need), body: text, kind: need.kind },
    answers: buttons.map(({ decision, token }) => ({ decision, token, title: BUTTON_WORDS[decision] })),
  };
  const { origin } = new URL(endpoint);
  const { contact, services } = settings.push;
  return {
    url: endpoint,
    headers: {
      authorization: vapidHeader(key, { endpoint, contact, nowMs }),
      ...{ "content-type": "application/octet-stream", "content-encoding": "aes128gcm" },
      ...{ ttl: String(Math.ceil(leftMs / 1_000)), topic: topicOf(need) },
      urgency: need.kind === "permission" ? "high" : "normal",
    },
    body: encryptFor({ p256dh, auth }, JSON.stringify(shown), salt),
    push: { configured: services.find((service) => new URL(service).origin === origin) },
  };
}

/** Creates the channel of notifications (PU1, PU2). */
export function createChannel(parts: OutboxParts): Channel {
  const { settings, db, world, commit, tokens } = parts;
  const key = once(() => pushKey(db, commit));
  const noticeFor = async (stored: Need, sessionKey: string, to: string, reader: Reader): Promise<Notice> => {
    const { limited } = stored;
    const isLimited = limited !== undefined && !reader.everySession;
    const need = isLimited ? { ...stored, text: limited, mayAllow: false } : stored;
    const { ntfy } = settings.push;
    const isNtfy = reader.device === undefined;
    const mayAnswer = reader.mayAnswer(sessionKey) && (!isNtfy || settings.push.url !== undefined);
    const masked = world.redactor.line(need.text, WHOLE_MAX_CHARS);
    const ofNtfy = ntfy?.detail === "full" || need.kind === "test" ? masked : "Open the inbox to see it.";
    // Those who may allow a request see all of it. Other texts are masked, as in the inbox.
    const isWhole = need.kind === "permission" && reader.mayAnswer(sessionKey);
    const text = isNtfy ? ofNtfy : isWhole ? need.text : masked;
    const mayAllow = !isNtfy || ntfy?.allow === true;
    const sealing = sealingKey(await key());
    const until = need.expiresAt ?? 0;
    const buttons = decisionsOf(need, { shown: text, mayAnswer, mayAllow }).map((decision) => ({
      decision,
      token: sealButton(sealing, { requestId: need.ref, decision, to, until }),
    }));
    return { need, text, buttons };
  };
  const deliver: Channel["deliver"] = async ({ text, sessionKey, route: { to } }) => {
    const need = JSON.parse(text) as Need;
    const reader = await readerAt(to, { db, settings, tokens, now: world.clock.now() });
    if (reader === undefined || (need.kind !== "test" && !reader.sees(sessionKey)))
      return { kind: "skipped", error: "the device was removed, or may no longer be told" };
    const over = await whyOver(parts, need);
    if (over !== undefined) return { kind: "skipped", error: over };
    const notice = await noticeFor(need, sessionKey, to, reader);
    const { device } = reader;
    if (device === undefined) return postNews(ntfyRequest(settings, notice), world);
    const sent = await postNews(webPushRequest(parts, await key(), { device, notice }), world);
    if (sent.kind !== "refused" || sent.isGone !== true) return sent;
    // The browser has ended its subscription: the person removed it, or the browser was.
    await commit((unit) => deleteDevice(unit.tx, device.id));
    world.log.info({ nodeId: device.id }, "a device that takes no more notifications was removed");
    return { kind: "skipped", error: "the device takes no more notifications" };
  };
  return { id: PUSH, deduplicates: true, deliver };
}
