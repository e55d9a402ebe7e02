// Parses the address of a PostgreSQL database. Error texts never quote the address, because any part of it
// may be the password. The form shown to people has host, port, database and schema, but no user or password.

import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { optional } from "../../core/optional.ts";
import { StoreProblem } from "../problems.ts";

const DEFAULT_SCHEMA = "parley";
const DEFAULT_PORT = 5432;
/**
 * Matches schema names that need no quotes and leave room for the prefix of the notification channel's name.
 */
const SCHEMA_NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,47}$/;
/** Schema names that every database already uses, so a store cannot have them. */
const TAKEN_SCHEMAS = new Set(["information_schema"]);
const PARAMETERS = [
  "schema",
  "host",
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "channel_binding",
] as const;
const SSL_MODES = ["disable", "require", "verify-full", "no-verify"];
const BINDINGS = ["disable", "prefer", "require"];

export interface PostgresAddress {
  /** Host, credentials and TLS options in the driver's form. */
  readonly login: {
    readonly host: string;
    readonly port: number;
    readonly database: string;
    readonly ssl: boolean | ConnectionOptions;
    readonly user?: string;
    readonly password?: string;
    readonly enableChannelBinding?: boolean;
  };
  readonly schema: string;
  /**
   * The form shown to people: `postgresql://host:port/database`, plus the schema if it is not the default.
   */
  readonly place: string;
  mask(text: string): string;
}

function bad(detail: string): StoreProblem {
  return new StoreProblem("bad_address", "named by store.postgresUrl", { detail });
}

/**
 * Parses the address. An address may have no host, if it names a socket path in `?host=`. `URL` requires a
 * host, so such an address gets a placeholder.
 */
function parseAddress(text: string): URL {
  const url = URL.parse(text) ?? URL.parse(text.replace("@/", "@localhost/"));
  if (url === null) throw bad("it is not a valid URL");
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    throw bad("it does not begin with postgresql://");
  }
  if (url.hash !== "") throw bad("a # in it is not percent-encoded");
  return url;
}

function decodePart(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw bad(`a % in its ${what} is not percent-encoded`);
  }
}

function fileOf(url: URL, name: (typeof PARAMETERS)[number]): string | undefined {
  const path = url.searchParams.get(name);
  if (path === null) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw bad(`the file of its ${name} could not be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Returns the value of a parameter that has a fixed set of values, or null if the parameter is missing. */
function choiceOf(url: URL, name: (typeof PARAMETERS)[number], values: readonly string[]): string | null {
  const given = url.searchParams.get(name);
  if (given === null || values.includes(given)) return given;
  throw bad(`its ${name} must be ${values.slice(0, -1).join(", ")} or ${values.at(-1)}`);
}

/** Returns the TLS options, or false without TLS. Only `no-verify` disables the check of the certificate. */
function tlsOf(url: URL): boolean | ConnectionOptions {
  const mode = choiceOf(url, "sslmode", SSL_MODES);
  const ca = fileOf(url, "sslrootcert");
  const cert = fileOf(url, "sslcert");
  const key = fileOf(url, "sslkey");
  const given = ca ?? cert ?? key;
  if (mode === "disable" || (mode === null && given === undefined)) return false;
  return {
    ...(mode === "no-verify" ? { rejectUnauthorized: false } : {}),
    ...optional({ ca, cert, key }),
  };
}

/** Reads `postgresql://user:password@host:port/database?schema=name`. Throws a `StoreProblem`. */
export function postgresAddress(text: string): PostgresAddress {
  const url = parseAddress(text);
  const unknown = [...url.searchParams.keys()].filter((name) => !PARAMETERS.some((known) => known === name));
  if (unknown.length > 0) {
    throw bad(`it has an unknown parameter; allowed are ${PARAMETERS.join(", ")}`);
  }
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  if (!SCHEMA_NAME.test(schema) || TAKEN_SCHEMAS.has(schema))
    throw bad(
      "its schema must be 1 to 48 lower-case letters, digits and _, not begin with a digit or pg_, and not " +
        "be information_schema",
    );
  const named = decodePart(url.hostname, "host").replace(/^\[(.*)\]$/, "$1");
  const host = url.searchParams.get("host") ?? (named === "" ? "localhost" : named);
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  const database = decodePart(url.pathname.slice(1), "database");
  if (database === "") throw bad("it names no database");
  const user = decodePart(url.username, "user");
  const password = decodePart(url.password, "password");
  const binding = choiceOf(url, "channel_binding", BINDINGS);
  const shownHost = host.includes(":") ? `[${host}]` : encodeURI(host);
  const shownSchema = schema === DEFAULT_SCHEMA ? "" : `?schema=${schema}`;
  const present = [password, url.password].filter((secret) => secret !== "");
  return {
    login: {
      host,
      port,
      database,
      ssl: tlsOf(url),
      ...(user === "" ? {} : { user }),
      ...(password === "" ? {} : { password }),
      ...(binding === "require" || binding === "prefer" ? { enableChannelBinding: true } : {}),
    },
    schema,
    place: `postgresql://${shownHost}:${port}/${encodeURIComponent(database)}${shownSchema}`,
    mask: (text) => present.reduce((masked, secret) => masked.replaceAll(secret, "[redacted]"), text),
  };
}
