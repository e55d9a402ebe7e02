// Owns the methods for the devices that are notified. A caller sees and removes the devices that its token
// added; one with all rights sees all of them, without their addresses.

import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { keyRulesOf } from "../../access/access.ts";
import { seesEverything } from "../../access/token.ts";
import { reachOf } from "../../core/rules/outgoing.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { mainKeyOf } from "../../core/shapes/session-key.ts";
import { defaultAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { type CallContext, commitAnswer, type FeatureDeps, type Methods } from "../../gateway/call.ts";
import { isPublic } from "../../world/outgoing.ts";
import type { PUSH_METHODS, PushDeviceRow } from "./contract.ts";
import { queueNeed } from "./outbox.ts";
import { NTFY } from "./rights.ts";
import { deleteDevice, listDevices, type PushDevice, pushKey, putDevice } from "./store.ts";
import { keyProblem, publicPoint } from "./web-push.ts";

/** Maximum number of devices of one token. */
const DEVICES_MAX = 20;
const ID_CHARS = 32;
type Context = CallContext<FeatureDeps>;

const mayManageAll = ({ caller }: Context): boolean =>
  hasScope(caller.scopes, "operator.admin") && seesEverything(caller);

async function devicesFor(ctx: Context): Promise<PushDevice[]> {
  const all = await listDevices(ctx.access.db);
  return mayManageAll(ctx) ? all : all.filter(({ createdBy }) => createdBy === ctx.caller.id);
}

function rowOf({ caller, deps }: Context, device: PushDevice): PushDeviceRow {
  const { id, name, endpoint, createdAt, createdBy } = device;
  const service = new URL(endpoint).host;
  return { id, name: deps.world.redactor.mask(name), service, createdAt, own: createdBy === caller.id };
}

const noDevice = (id: string): Failure =>
  fail("pairing_not_found", `no notified device has the id ${JSON.stringify(id)}`, {
    hint: "push.list shows the ids.",
  });

/** Returns why a browser's address can't be used. Its name is checked when a connection is opened (OC1). */
function addressProblem({ push }: Settings, endpoint: string): string | undefined {
  const parsed = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const configured = push.services.find((service) => new URL(service).origin === parsed?.origin);
  const reach = reachOf("push", endpoint, configured);
  if (reach.kind === "refused") return reach.why;
  const host = parsed?.hostname.replace(/^\[|\]$/g, "") ?? "";
  if (reach.kind === "any address" || isIP(host) === 0 || isPublic(host)) return undefined;
  return "the address leads to this machine or a private network";
}

type Done = Promise<Result<{ ok: true; id: string }>>;
type Subscribed = Readonly<Record<"endpoint" | "p256dh" | "auth" | "name", string>>;

async function subscribe(ctx: Context, { endpoint, p256dh, auth, name }: Subscribed): Done {
  const { settings } = ctx.deps;
  // The device would get the rights of the token with which this one was paired.
  if (ctx.caller.device !== undefined)
    return fail("unauthorized", "the token of a paired device can't add a device that is notified", {
      hint: 'Sign in on the page with the token of the gateway, or with one of "npx parley-gateway tokens".',
    });
  const wrongAddress = addressProblem(settings, endpoint);
  if (wrongAddress !== undefined)
    return fail("address_denied", `${wrongAddress.replace(/\.? Nothing was sent\.$/, "")}`, {
      hint: "A push service must be public, with https, or in push.services.",
    });
  const wrongKey = keyProblem({ p256dh, auth });
  if (wrongKey !== undefined) return fail("invalid_argument", wrongKey);
  const id = createHash("sha256").update(endpoint).digest("hex").slice(0, ID_CHARS);
  return commitAnswer(ctx, async (unit) => {
    const all = await listDevices(unit.tx);
    const others = all.filter((one) => one.id !== id && one.createdBy === ctx.caller.id);
    if (others.length >= DEVICES_MAX)
      return fail("too_large", `${DEVICES_MAX} devices are notified already`, {
        hint: "Remove one: npx parley-gateway push remove",
      });
    const made = { createdAt: unit.now, createdBy: ctx.caller.id };
    await putDevice(unit.tx, { id, name, endpoint, p256dh, auth, ...made });
    return ok({ ok: true, id });
  });
}

async function remove(ctx: Context, id: string): Done {
  const known = (await devicesFor(ctx)).some((one) => one.id === id);
  if (!known) return noDevice(id);
  return commitAnswer(ctx, async (unit) => {
    await deleteDevice(unit.tx, id);
    return ok({ ok: true, id });
  });
}

async function test(ctx: Context, id: string): Done {
  const { engine, settings } = ctx.deps;
  const isNtfy = id === NTFY && settings.push.ntfy !== undefined && mayManageAll(ctx);
  if (!isNtfy && !(await devicesFor(ctx)).some((one) => one.id === id)) return noDevice(id);
  return engine.commit(async (unit) => {
    const text = "This is a test.";
    const need = {
      kind: "test",
      item: "test",
      ref: "test",
      agentId: "Parley",
      text,
      since: unit.now,
    } as const;
    const sessionKey = mainKeyOf(defaultAgent(settings).id, keyRulesOf(settings));
    if (!(await queueNeed(unit, id, sessionKey, need)))
      return fail("queue_full", "too many notifications wait for this device");
    return ok({ ok: true, id });
  });
}

export const pushMethods: Methods<keyof typeof PUSH_METHODS, FeatureDeps> = {
  "push.list": {
    async handle(ctx) {
      const { engine, settings } = ctx.deps;
      const key = publicPoint(await pushKey(engine.store.db, engine.commit));
      const devices = (await devicesFor(ctx)).map((device) => rowOf(ctx, device));
      return ok({ key, devices, ntfy: settings.push.ntfy !== undefined });
    },
  },
  "push.subscribe": { handle: subscribe },
  "push.remove": { handle: (ctx, { id }) => remove(ctx, id) },
  "push.test": { handle: (ctx, { id }) => test(ctx, id) },
};
