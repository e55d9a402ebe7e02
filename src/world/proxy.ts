// Chooses the proxy of a request by the variables that most programs read: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY
// and NO_PROXY, in lower case (which has priority) or upper case.
// PX1: this machine's own addresses are never asked for through a proxy, because there it is another machine.

import { BlockList, isIP } from "node:net";

export type Variables = Readonly<Record<string, string | undefined>>;

let variables: Variables = {};

/** Sets the environment whose variables apply to all requests of this process. Default: none. */
export function useProxies(environment: Variables): void {
  variables = environment;
}

function readVariable(name: string): string | undefined {
  return [variables[name], variables[name.toUpperCase()]].find((value) => value?.trim())?.trim();
}

/** Returns the address of a variable's proxy, also if Parley can't use it. */
function addressIn(name: string): string | undefined {
  const value = readVariable(name);
  return value === undefined || /^[a-z0-9]+:\/\//i.test(value) ? value : `http://${value}`;
}

/** A proxy of the environment, for people. */
export interface NamedProxy {
  readonly variable: string;
  /** Without name and password. */
  readonly address: string;
  readonly usable: boolean;
}

/** Returns the proxies of the environment. */
export function listProxies(): NamedProxy[] {
  return ["http_proxy", "https_proxy", "all_proxy"].flatMap((variable) => {
    const address = addressIn(variable);
    if (address === undefined) return [];
    if (!URL.canParse(address)) return [{ variable, address: "an invalid address", usable: false }];
    const { protocol, host } = new URL(address);
    return [{ variable, address: `${protocol}//${host}`, usable: isUsable(address) }];
  });
}

function isUsable(address: string): boolean {
  return URL.canParse(address) && ["http:", "https:"].includes(new URL(address).protocol);
}

/** Returns the proxy for a URL of HTTP or WebSocket, or undefined if it is reached directly. */
export function proxyFor(url: string): string | undefined {
  // An invalid address is refused later, with an error of its own.
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url.replace(/^ws/, "http"));
  const isSecure = protocol === "https:";
  const proxy = addressIn(isSecure ? "https_proxy" : "http_proxy") ?? addressIn("all_proxy");
  if (proxy === undefined || !isUsable(proxy)) return undefined;
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  return isExcepted(host, port === "" ? (isSecure ? "443" : "80") : port) ? undefined : proxy;
}

const own = new BlockList();
own.addSubnet("127.0.0.0", 8, "ipv4");
own.addAddress("::1", "ipv6");

function isIn(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 4 ? "ipv4" : "ipv6");
}

function isExcepted(host: string, port: string): boolean {
  if (host === "localhost" || host.endsWith(".localhost") || isIn(own, host)) return true;
  const entries = (readVariable("no_proxy") ?? "").toLowerCase().split(/[\s,]+/);
  return entries.some((entry) => entry !== "" && isMeant(entry, host, port));
}

/** Returns whether an entry of NO_PROXY means a host: `*`, a name with its subdomains, or a network. */
function isMeant(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true;
  const [, name = "", ofPort] = isIP(entry) === 0 ? (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []) : ["", entry];
  if (ofPort !== undefined && ofPort !== port) return false;
  const [network = "", bits] = name.split("/");
  const family = isIP(network);
  if (bits !== undefined && family !== 0) {
    const list = new BlockList();
    const isValid = /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
    if (isValid) list.addSubnet(network, Number(bits), family === 4 ? "ipv4" : "ipv6");
    return isIn(list, host);
  }
  const plain = name.replace(/^\[|\]$/g, "").replace(/^\*?\./, "");
  return plain !== "" && (host === plain || host.endsWith(`.${plain}`));
}
