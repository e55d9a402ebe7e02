// Checks whether a gateway can use the PostgreSQL store, and whether its commits are durable.
// Each warning and problem contains a fix, if possible as an SQL statement.

import type { Cli } from "../../../cli/cli.ts";
import { age, count } from "../../../cli/layout.ts";
import type { DatabaseReport } from "../../../cli/parts.ts";
import type { Finding } from "../../../feature.ts";
import { alteredSchema, bad, good, risk } from "./finding.ts";

/**
 * Warning threshold for the difference between the clocks. People would notice a larger one in the dates that
 * they see.
 */
const CLOCK_DIFFERENCE_MS = 2_000;

function checkSchema({ schema }: DatabaseReport): Finding {
  const { version, known } = schema;
  if (version === undefined)
    return good("schema", `${schema.name} will be created when a gateway first starts`);
  const text = `${schema.name} has version ${version}`;
  if (version === known) return good("schema", text);
  if (version < known) return good("schema", `${text}; the next start upgrades it to version ${known}`);
  const mend = "Upgrade this gateway: two versions can share a store only during an upgrade.";
  return risk("schema", `${text}, from the next version of this program`, mend);
}

function checkRights({ missingRights }: DatabaseReport): Finding {
  if (missingRights.length === 0)
    return good("rights", "the database user has all rights that a gateway needs");
  const mend = `Run as a user who can grant rights: ${missingRights.join("; ")};`;
  return bad("rights", "the database user lacks rights that a gateway needs", mend);
}

function checkClock({ clockAheadMs }: DatabaseReport): Finding {
  const apartMs = Math.abs(clockAheadMs);
  if (apartMs < CLOCK_DIFFERENCE_MS) return good("clock", "agrees with the database's clock");
  const where = `${Math.round(apartMs / 1000)} s ${clockAheadMs > 0 ? "ahead of" : "behind"}`;
  const text = `this clock is ${where} the database's clock, which sets all dates`;
  return risk("clock", text, "Synchronize the clocks of both machines with the same time servers.");
}

function checkConnections({ connections, processes }: DatabaseReport): Finding {
  const { max, others, ofProcess } = connections;
  // If no gateway runs, count one: the gateway that the user probably wants to start.
  const gateways = Math.max(1, processes.filter(({ alive }) => alive).length);
  const wanted = gateways * ofProcess + others;
  const counted = `${count(gateways, "gateway")} with up to ${ofProcess} each, ${others} of other programs`;
  if (wanted <= max) return good("connections", `${max} available: ${counted}`);
  const text = `the server allows ${max}, but up to ${wanted} are needed: ${counted}`;
  const mend = "Raise max_connections (and any limit of the user and the database), or run fewer gateways.";
  return risk("connections", text, mend);
}

function checkSafety({ unsafe }: DatabaseReport): Finding {
  if (unsafe.length === 0) return good("durability", "commits are written to the server's disk");
  const text = `${unsafe.join(", ")}: accepted messages may be lost if the server crashes or loses power`;
  const wanted = unsafe.map((setting) => setting.replace("= off", "= on")).join(", ");
  return risk("durability", text, `Set ${wanted} on the server.`);
}

function checkProcesses({ processes, version }: DatabaseReport, nowMs: number): Finding {
  const alive = processes.filter((process) => process.alive);
  if (alive.length === 0) return good("gateways", "no gateway uses the store");
  const each = alive.map((one) => `${one.host} (${one.version}, since ${age(one.startedAt, nowMs)})`);
  const text = `${count(alive.length, "gateway")} alive: ${each.join(", ")}`;
  if (alive.some((one) => one.version !== version)) {
    const mend =
      "Run the same version everywhere; two successive versions work together only during an upgrade.";
    return risk("gateways", `${text}; this program is ${version}`, mend);
  }
  if (new Set(alive.map((one) => one.configRevision)).size === 1) return good("gateways", text);
  const revisions = alive.map((one) => `${one.host} runs ${one.configRevision ?? "unknown settings"}`);
  const mend =
    "Give each gateway the same configuration file. See who must restart: npx parley-gateway status";
  return risk("gateways", `${text}, with different settings: ${revisions.join(", ")}`, mend);
}

export async function checkDatabase(cli: Cli, url: string): Promise<Finding[]> {
  const report = await cli.parts.inspectDatabase(url);
  if (!report.ok) return [bad("store", report.error)];
  const { place, server, differences } = report.value;
  return [
    good("store", `${place}, PostgreSQL ${server}`),
    checkSchema(report.value),
    ...alteredSchema(differences),
    checkRights(report.value),
    checkClock(report.value),
    checkConnections(report.value),
    checkSafety(report.value),
    checkProcesses(report.value, cli.parts.world.clock.now()),
  ];
}
