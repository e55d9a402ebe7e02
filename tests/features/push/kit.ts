// A push service, the browsers that are subscribed at it, and an ntfy server: real HTTP servers that refuse
// what real ones refuse. A browser decrypts with the library of RFC 8188's author.

import { createECDH, createPublicKey, type ECDH, randomBytes, verify } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { createRequire } from "node:module";
import { connect, type GatewayClient } from "../../../src/contract/client/node.ts";
import { makeHome, startGateway, TOKEN } from "../../cli/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { type HttpHere, serveHttp } from "../../kit/loopback.ts";
import { PATIENCE_MS } from "../../kit/until.ts";

/** The library has no types. */
const { decrypt } = createRequire(import.meta.url)("http_ece") as {
  decrypt(
    body: Buffer,
    params: { readonly version: "aes128gcm"; readonly privateKey: ECDH; readonly authSecret: string },
  ): Buffer;
};

/** The text of a message, for the service worker of a browser. */
export interface Shown {
  readonly tag: string;
  readonly title: string;
  readonly body: string;
  readonly kind: string;
  readonly answers: readonly { readonly decision: string; readonly token: string }[];
}

export interface Pushed {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly shown: Shown;
  /** The text as the browser's service worker gets it. */
  readonly text: string;
}

/** A subscription of a browser, with what it got. */
export interface FakeBrowser {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
  readonly got: Pushed[];
}

/** Returns the problem of a request's signature (RFC 8292), if any. */
function signatureProblem(authorization: string, origin: string, applicationKey: string): string | undefined {
  const [, token = "", key = ""] = /^vapid t=(\S+), k=(\S+)$/.exec(authorization) ?? [];
  if (key !== applicationKey) return "another key than that of the subscription";
  const point = Buffer.from(key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  const jwk = { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const [head = "", claim = "", mark = ""] = token.split(".");
  const isGenuine = verify(
    "sha256",
    Buffer.from(`${head}.${claim}`),
    { key: publicKey, dsaEncoding: "ieee-p1363" },
    Buffer.from(mark, "base64url"),
  );
  const { aud, exp, sub } = JSON.parse(Buffer.from(claim, "base64url").toString());
  const left = exp - Date.now() / 1_000;
  if (!isGenuine || aud !== origin || left <= 0 || left > 86_400) return "a wrong signature";
  return /^(mailto:|https:)/.test(sub) ? undefined : "no contact";
}

interface Subscribed extends FakeBrowser {
  readonly ecdh: ECDH;
  /** Public key of the gateway. */
  readonly key: string;
}

/** Starts a push service. `status`: what it answers, by default 201. `again`: that of one which was closed. */
export async function startPushService(
  status: (at: number) => number = () => 201,
  again: { readonly port?: number; readonly browsers?: Map<string, Subscribed> } = {},
) {
  const { port = 0, browsers = new Map<string, Subscribed>() } = again;
  let asked = 0;
  const here: HttpHere = await serveHttp((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const browser = browsers.get(request.url ?? "");
      const { headers } = request;
      if (browser === undefined) return void response.writeHead(404).end();
      const problem = signatureProblem(headers.authorization ?? "", here.origin, browser.key);
      if (problem !== undefined) return void response.writeHead(403).end(problem);
      const body = Buffer.concat(chunks);
      const isWrong = !headers.ttl || headers["content-encoding"] !== "aes128gcm" || body.length > 4_096;
      if (isWrong) return void response.writeHead(400).end();
      const answered = status(asked++);
      if (answered === 201) {
        const params = { version: "aes128gcm", privateKey: browser.ecdh, authSecret: browser.auth } as const;
        const text = decrypt(body, params).toString();
        browser.got.push({ headers, body, text, shown: JSON.parse(text) as Shown });
      }
      response.writeHead(answered).end();
    });
  }, port);
  cleanup(here.close);
  /** Subscribes a browser, as `pushManager.subscribe` does. `key`: that of the gateway. */
  const subscribe = (key: string): FakeBrowser => {
    const ecdh = createECDH("prime256v1");
    const p256dh = ecdh.generateKeys().toString("base64url");
    const path = `/push/${randomBytes(12).toString("base64url")}`;
    const [auth, got] = [randomBytes(16).toString("base64url"), [] as Pushed[]];
    const browser = { endpoint: `${here.origin}${path}`, p256dh, auth, got, ecdh, key };
    browsers.set(path, browser);
    return browser;
  };
  return { ...here, browsers, subscribe };
}

/** Subscribes a browser at the service, and adds it to the gateway. */
export async function addBrowser(
  client: GatewayClient,
  { subscribe }: Pick<Awaited<ReturnType<typeof startPushService>>, "subscribe">,
  name = "phone",
) {
  const { key } = await client.request("push.list", {});
  const browser = subscribe(key);
  const { endpoint, p256dh, auth } = browser;
  const { id } = await client.request("push.subscribe", { endpoint, p256dh, auth, name });
  return { ...browser, id };
}

/** Starts a gateway with the offline model, which asks before each command: `run: touch x`. */
export async function openDesk(push: object, more: Record<string, unknown> = {}) {
  const { home, port } = await makeHome({ push, ...more });
  const gateway = await startGateway(home);
  const http = `http://127.0.0.1:${port}`;
  const open = async (token = TOKEN): Promise<GatewayClient> => {
    const url = `ws://127.0.0.1:${port}`;
    const client = await connect({ url, token, reconnect: false, connectTimeoutMs: PATIENCE_MS });
    cleanup(() => client.close());
    return client;
  };
  const client = await open();
  const say = (message: string, sessionKey = "main") => client.request("chat.send", { sessionKey, message });
  const press = async (token: string | undefined, method = "POST") => {
    const body = method === "POST" ? { body: JSON.stringify({ token }) } : {};
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${http}/push/answer`, { method, headers, ...body });
    return { status: answer.status, body: (await answer.json()) as { error?: { message: string } } };
  };
  const pushes = async () =>
    (await client.request("deliveries.list", {})).deliveries.filter(({ route }) => route.channel === "push");
  return { home, port, http, gateway, client, open, say, press, pushes };
}

/** Returns the token of a notification's button. */
export const buttonOf = (pushed: Pushed | undefined, decision: string): string | undefined =>
  pushed?.shown.answers.find((one) => one.decision === decision)?.token;
