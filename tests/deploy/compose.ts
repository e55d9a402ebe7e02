// Reads the files of containers: the instructions of the Dockerfile, and compose files as docker-compose
// reads them.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { temporaryFolder } from "../kit/cleanup.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const COMPOSE_FILES = ["compose.yaml", "deploy/one.yaml", "deploy/three.yaml"];

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly env_file?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly init?: boolean;
  readonly stop_grace_period?: string;
}

export interface Compose {
  readonly services: Readonly<Record<string, Service>>;
}

/** Returns the Dockerfile's instructions in order, with continued lines joined. */
export function readDockerfile(): { name: string; rest: string }[] {
  return readFileSync(join(ROOT, "Dockerfile"), "utf8")
    .replace(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => /^(\w+) (.*)$/.exec(line) ?? [])
    .map(([, name = "", rest = ""]) => ({ name, rest }));
}

/** Returns a compose file with its anchors resolved. */
export function readCompose(file: string): Compose {
  return parse(readFileSync(join(ROOT, file), "utf8"), { merge: true }) as Compose;
}

/** Returns a compose file as docker-compose reads it, with these lines in each of the files for secrets. */
export function resolveCompose(file: string, secrets: string): Compose {
  const folder = join(temporaryFolder(), "deploy");
  mkdirSync(folder);
  const copy = join(folder, "compose.yaml");
  cpSync(join(ROOT, file), copy);
  for (const name of ["database.env", "gateway.env"]) writeFileSync(join(folder, name), secrets);
  const args = ["--file", copy, "config"];
  return parse(execFileSync("docker-compose", args, { encoding: "utf8" })) as Compose;
}
