// Checks whether a gateway can use the PostgreSQL store, and whether its commits are durable.
// Each warning and problem contains a fix, if possible as an SQL statement.

import type { Cli } from "../cli.ts";
import { age, count } from "../layout.ts";
import type { DatabaseReport } from "../parts.ts";
import { alteredSchema, type Finding } from "./finding.ts";

/**
 * Warning threshold for the difference between the clocks. People would notice a larger one in the dates that
 * they see.
 */
const CLOCK_DIFFERENCE_MS = 2_000;

function checkSchema({ schema }: DatabaseReport): Finding {
  const name = "schema";
  const { version, known } = schema;
  if (version === undefined) {
    return { name, level: "ok", text: `${schema.name} will be created when a gateway first starts` };
  }
  const text = `${schema.name} has version ${version}`;
  if (version === known) return { name, level: "ok", text };
  if (version < known) {
    return { name, level: "ok", text: `${text}; the next start upgrades it to version ${known}` };
  }
  if (version === known + 1) {
    const mend = "Upgrade this gateway: two versions can share a store only during an upgrade.";
    return { name, level: "warning", text: `${text}, from the next version of this program`, mend };
  }
  const mend = "Use the version that wrote it, or name another schema with ?schema=name.";
  return { name, level: "problem", text: `${text}; this program supports versions up to ${known + 1}`, mend };
}

function checkRights({ missingRights }: DatabaseReport): Finding {
  const name = "rights";
  if (missingRights.length === 0) {
    return { name, level: "ok", text: "the database user has all rights that a gateway needs" };
  }
  return {
    name,
    level: "problem",
    text: "the database user lacks rights that a gateway needs",
    mend: `Run as a user who can grant rights: ${missingRights.join("; ")};`,
  };
}

function checkClock({ clockAheadMs }: DatabaseReport): Finding {
  const name = "clock";
  const apartMs = Math.abs(clockAheadMs);
  if (apartMs < CLOCK_DIFFERENCE_MS) return { name, level: "ok", text: "agrees with the database's clock" };
  const where = clockAheadMs > 0 ? "ahead of" : "behind";
  return {
    name,
    level: "warning",
    text: `this clock is ${Math.round(apartMs / 1000)} s ${where} the database's clock, which sets all dates`,
    mend: "Synchronize the clocks of both machines with the same time servers.",
  };
}

function checkConnections({ connections, processes }: DatabaseReport): Finding {
  const name = "connections";
  const { max, others, ofProcess } = connections;
  const alive = processes.filter((process) => process.alive).length;
  // If no gateway runs, count one: the gateway that the user probably wants to start.
  const gateways = Math.max(1, alive);
  const wanted = gateways * ofProcess + others;
  const counted = `${count(gateways, "gateway")} with up to ${ofProcess} each, ${others} of other programs`;
  if (wanted <= max) return { name, level: "ok", text: `${max} available: ${counted}` };
  return {
    name,
    level: "warning",
    text: `the server allows ${max}, but up to ${wanted} are needed: ${counted}`,
    mend: "Raise max_connections (and any limit of the user and the database), or run fewer gateways.",
  };
}

function checkSafety({ unsafe }: DatabaseReport): Finding {
  const name = "durability";
  if (unsafe.length === 0) return { name, level: "ok", text: "commits are written to the server's disk" };
  return {
    name,
    level: "warning",
    text: `${unsafe.join(", ")}: accepted messages may be lost if the server crashes or loses power`,
    mend: `Set ${unsafe.map((setting) => setting.replace("= off", "= on")).join(", ")} on the server.`,
  };
}

function checkProcesses({ processes, version }: DatabaseReport, nowMs: number): Finding {
  const name = "gateways";
  const alive = processes.filter((process) => process.alive);
  if (alive.length === 0) return { name, level: "ok", text: "no gateway uses the store" };
  const each = alive.map((one) => `${one.host} (${one.version}, since ${age(one.startedAt, nowMs)})`);
  const text = `${count(alive.length, "gateway")} alive: ${each.join(", ")}`;
  const versions = new Set([version, ...alive.map((one) => one.version)]);
  if (versions.size === 1) {
    const revisions = alive.map((one) => `${one.host} runs ${one.configRevision ?? "unknown settings"}`);
    if (new Set(alive.map((one) => one.configRevision)).size === 1) return { name, level: "ok", text };
    return {
      name,
      level: "warning",
      text: `${text}, with different settings: ${revisions.join(", ")}`,
      mend: "Give each gateway the same configuration file. See who must restart: npx parley-gateway status",
    };
  }
  return {
    name,
    level: "warning",
    text: `${text}; this program is ${version}`,
    mend: "Run the same version everywhere; two successive versions work together only during an upgrade.",
  };
}

export async function checkDatabase(cli: Cli, url: string): Promise<Finding[]> {
  const report = await cli.parts.inspectDatabase(url);
  if (!report.ok) return [{ name: "store", level: "problem", text: report.error }];
  const { place, server } = report.value;
  const { clock } = cli.parts.world;
  return [
    { name: "store", level: "ok", text: `${place}, PostgreSQL ${server}` },
    checkSchema(report.value),
    ...alteredSchema(report.value.differences),
    checkRights(report.value),
    checkClock(report.value),
    checkConnections(report.value),
    checkSafety(report.value),
    checkProcesses(report.value, clock.now()),
  ];
}
