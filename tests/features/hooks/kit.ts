// A gateway with incoming web hooks, and senders that sign, forge and repeat requests.

import { createHmac } from "node:crypto";
import type { HookMapping, HookSettings } from "../../../src/features/hooks/settings.ts";
import { type House, type HouseOptions, openHouse } from "../../gateway/kit.ts";

export const HOOK_TOKEN = "token-of-the-hooks-0123456789";
export const SECRET = "secret-of-the-sender-0123456789";

const DEFAULTS = { match: { events: [] }, preset: "token", deliver: false } as const;

export const github: HookMapping = {
  ...DEFAULTS,
  id: "github",
  preset: "github",
  secret: SECRET,
  message: "{{event}} in {{body.repository.full_name}}: {{body.head_commit.message}}",
};
export const ci: HookMapping = {
  ...{ id: "ci", match: { path: "builds", events: [] }, deliver: false },
  ...{ preset: "hmac", secret: SECRET, signatureHeader: "x-ci-signature", deliveryHeader: "x-ci-delivery" },
  message: "Build {{body.build.number}} {{body.build.state}}",
  sessionKey: "hook:builds",
  agentId: "research",
};
export const plain: HookMapping = { ...DEFAULTS, id: "plain", message: "{{body.text}}", deliver: true };

export function openHooks(hooks: Partial<HookSettings> = {}, more: HouseOptions = {}): Promise<House> {
  const set = { enabled: true, token: HOOK_TOKEN, mappings: [github, ci, plain], ...hooks };
  return openHouse({ ...more, choices: { ...more.choices, features: { hooks: set } } });
}

export interface Told {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
  readonly body: any;
  readonly headers: Headers;
}

export type Header = Readonly<Record<string, string>>;

/** Posts a body to a path. A text is sent unchanged. */
export async function post(house: House, path: string, body: unknown, headers: Header = {}): Promise<Told> {
  const answer = await fetch(`${house.http}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json(), headers: answer.headers };
}

export const bearer = (token: string): Header => ({ authorization: `Bearer ${token}` });

/** Posts a body with the token of web hooks. */
export const hook = (house: House, path: string, body: unknown, headers: Header = {}): Promise<Told> =>
  post(house, path, body, { ...bearer(HOOK_TOKEN), ...headers });

export function signature(body: string, secret = SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

/** Posts an event as GitHub does. */
export function fromGithub(house: House, body: object, more: Header = {}, event = "push"): Promise<Told> {
  const text = JSON.stringify(body);
  return post(house, "/hooks/github", text, {
    "x-github-event": event,
    "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    "x-hub-signature-256": signature(text),
    ...more,
  });
}

export const push = (message: string): object => ({
  repository: { full_name: "acme/site" },
  head_commit: { message },
});

export async function runs(house: House): Promise<number> {
  const { count } = await house.store.db
    .selectFrom("runs")
    .select((e) => e.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}
