// Finds the address and the token of the gateway.
// The address is --url, or else the one that the gateway of the configured store wrote into that store. The
// first token found is used, in this order: the option, the configuration (or PARLEY_TOKEN), the file that
// the gateway generated.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { socketAddress, TOKEN_FILE } from "../contract/protocol.ts";
import { isObject, jsonOf } from "../core/json.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { safeLine } from "../core/text/safe-text.ts";
import { readGateways } from "../world/gateway-address.ts";
import { outgoingFetch } from "../world/outgoing.ts";
import { timeLimit } from "../world/pause.ts";
import type { Clock } from "../world.ts";
import { type Cli, loadOptionsOf } from "./cli.ts";

/** Timeout of the probe. A gateway usually answers much sooner. */
const PROBE_MS = 3_000;
/** Error codes which show that nothing listens at the address. */
const UNREACHABLE = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

export interface Address {
  readonly url: string;
  /** Empty if no token was found. */
  readonly token: string;
}

/** No gateway of this store is running. */
interface NotRunning {
  readonly ok: false;
  readonly code: "UNREACHABLE";
  readonly error: string;
  readonly hint: string;
}

/** Returns the host to connect to: loopback for a gateway that listens on all addresses. */
export function reachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::" || host === "[::]") return "[::1]";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/**
 * Converts the value of --url (a `ws://` address, an `http://` link, or host and port) to a `ws://` address.
 */
export function socketUrl(text: string): Result<string> {
  const address = socketAddress(/^[a-z]+:\/\//i.test(text) ? text : `ws://${text}`);
  if (address !== undefined) return ok(address);
  return fail("invalid_argument", `--url must be like ws://127.0.0.1:7275, got "${text}"`);
}

/**
 * Returns the link that opens the page and signs in. The token is after "#", which browsers do not send to
 * the server.
 */
export function pageLink(httpUrl: string, token: string): string {
  return `${httpUrl}/#token=${encodeURIComponent(token)}`;
}

/** Returns the `http://` address for a gateway's `ws://` address. */
export const httpBase = (url: string): string => url.replace(/^ws/, "http");

/** Returns the kind of program that answers at `http://host:port`. The request does not contain the token. */
export async function probe(base: string, clock: Clock): Promise<"gateway" | "stranger" | "nobody"> {
  using limit = timeLimit(clock, PROBE_MS);
  try {
    const response = await outgoingFetch("gateway", base)(`${base}/healthz`, { signal: limit.signal });
    const body = jsonOf(await response.text());
    return isObject(body) && "ok" in body ? "gateway" : "stranger";
  } catch (error) {
    const { cause } = error as { cause?: { code?: unknown } };
    return UNREACHABLE.some((code) => code === cause?.code) ? "nobody" : "stranger";
  }
}

/**
 * Returns the token that the gateway generated. Returns undefined if there is none, or this user cannot read
 * it.
 */
export async function generatedToken(storeDir: string): Promise<string | undefined> {
  const text = await readFile(join(storeDir, TOKEN_FILE), "utf8").catch(() => undefined);
  return text?.trim() || undefined;
}

/**
 * Reads the settings. Loads the code for this only when it is called, because many commands do not need it.
 */
export async function loadedSettings(cli: Cli): Promise<Result<Settings>> {
  const { loadSettings } = await import("../config.ts");
  const loaded = loadSettings(loadOptionsOf(cli));
  return loaded.ok ? ok(loaded.value.settings) : loaded;
}

/** Command lines that have printed the warning: a bridge asks for the address again and again. */
const warned = new WeakSet<Cli>();

/**
 * Returns the settings for the connection. If the file has problems, a gateway that runs keeps its earlier
 * settings, so it is looked for with those that can still be read.
 */
async function settingsForAddress(cli: Cli): Promise<Result<Settings>> {
  const settings = await loadedSettings(cli);
  if (settings.ok) return settings;
  const { configPathOf, settingsToConnect } = await import("../config.ts");
  const load = loadOptionsOf(cli);
  const readable = settingsToConnect(load);
  if (readable === undefined || runningUrl(readable) === undefined) return settings;
  const path = safeLine(configPathOf(load));
  if (!warned.has(cli))
    cli.note(
      `warning: ${path} has problems: npx parley-gateway config check. ` +
        "The running gateway keeps its settings.",
    );
  warned.add(cli);
  return ok(readable);
}

/** Returns the address of the gateway that runs with this store. Of several, prefers the configured one. */
export function runningUrl({ gateway, store }: Settings): string | undefined {
  const urls = readGateways(store.dir).map(({ url }) => url);
  return urls.find((url) => url === `ws://${reachableHost(gateway.host)}:${gateway.port}`) ?? urls[0];
}

/**
 * Returns the path of the configuration file to edit. Refuses the usual file while the gateways of its store
 * use others, because a change would have no effect.
 */
export async function configToEdit(cli: Cli): Promise<Result<string>> {
  const { configPathOf, namedConfig, settingsToConnect } = await import("../config.ts");
  const load = loadOptionsOf(cli);
  const path = configPathOf(load);
  const settings = namedConfig(load) === undefined ? settingsToConnect(load) : undefined;
  if (settings === undefined) return ok(path);
  const used = readGateways(settings.store.dir).flatMap(({ config }) => config ?? []);
  if (used.length === 0 || used.includes(path)) return ok(path);
  return fail("invalid_argument", `the running gateway uses ${safeLine(used.join(", "))}, not ${path}`, {
    hint: `Add --config ${safeLine(used[0] ?? "")}, or --config ${path} for the file that it does not use.`,
  });
}

/** Returns the gateway's token, or an empty text if there is none yet. */
export const tokenFor = async ({ gateway, store }: Settings): Promise<string> =>
  gateway.token ?? (await generatedToken(store.dir)) ?? "";

/** Returns the token that the options give, or the environment together with --url. */
const givenToken = ({ parts, options: { token, url } }: Cli): string | undefined =>
  token ?? (url === undefined ? undefined : parts.env.PARLEY_TOKEN || undefined);

/** Returns the token without a running gateway. It is an empty text if there is none yet. */
export async function findToken(cli: Cli): Promise<Result<string>> {
  const given = givenToken(cli);
  if (given !== undefined) return ok(given);
  const settings = await loadedSettings(cli);
  return settings.ok ? ok(await tokenFor(settings.value)) : settings;
}

/**
 * Returns the address and the token: of --url, or of the gateway that runs with the configured store.
 * Another program at the configured port gets no request.
 */
export async function findAddress(cli: Cli): Promise<Result<Address> | NotRunning> {
  const named = cli.options.url === undefined ? undefined : socketUrl(cli.options.url);
  if (named !== undefined && !named.ok) return named;
  const given = givenToken(cli);
  if (named !== undefined && given !== undefined) return ok({ url: named.value, token: given });
  const settings = await settingsForAddress(cli);
  if (!settings.ok) return settings;
  const url = named?.value ?? runningUrl(settings.value);
  if (url !== undefined) return ok({ url, token: given ?? (await tokenFor(settings.value)) });
  return {
    ok: false,
    code: "UNREACHABLE",
    error: `No gateway is running here with the store ${settings.value.store.dir}.`,
    hint: "Start it: npx parley-gateway gateway. To use a gateway elsewhere, give --url.",
  };
}
