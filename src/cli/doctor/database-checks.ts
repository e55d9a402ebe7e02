// Owns what the doctor finds about a PostgreSQL store: whether a gateway can use it, and whether what it
// commits is kept.
// DC1: each finding that is no plain fact says how to mend it, as a statement where there is one.

import type { Cli } from "../cli.ts";
import { age, count } from "../layout.ts";
import type { DatabaseReport } from "../parts.ts";
import { alteredSchema, type Finding } from "./finding.ts";

/** Clocks that differ by more than this show in what people see. */
const CLOCK_DIFFERENCE_MS = 2_000;

function checkSchema({ schema }: DatabaseReport): Finding {
  const name = "schema";
  const { version, known } = schema;
  if (version === undefined) {
    return { name, level: "ok", text: `${schema.name} is made at the first start of a gateway` };
  }
  const text = `${schema.name} has version ${version}`;
  if (version === known) return { name, level: "ok", text };
  if (version < known) {
    return { name, level: "ok", text: `${text}; the next start brings it to version ${known}` };
  }
  if (version === known + 1) {
    const mend = "Upgrade this gateway: it works beside the next version only.";
    return { name, level: "warning", text: `${text}, of the next version of this program`, mend };
  }
  const mend = "Start the version that wrote it, or name another schema with ?schema=name.";
  return { name, level: "problem", text: `${text}; this program knows up to ${known + 1}`, mend };
}

function checkRights({ missingRights }: DatabaseReport): Finding {
  const name = "rights";
  if (missingRights.length === 0) {
    return { name, level: "ok", text: "the user may do in the database what a gateway has to" };
  }
  return {
    name,
    level: "problem",
    text: "the user may not do all that a gateway has to",
    mend: `Run as somebody who may: ${missingRights.join("; ")};`,
  };
}

function checkClock({ clockAheadMs }: DatabaseReport): Finding {
  const name = "clock";
  const apartMs = Math.abs(clockAheadMs);
  if (apartMs < CLOCK_DIFFERENCE_MS) return { name, level: "ok", text: "goes with the database's" };
  const where = clockAheadMs > 0 ? "ahead of" : "behind";
  return {
    name,
    level: "warning",
    text: `this machine's is ${Math.round(apartMs / 1000)} s ${where} the database's, which all dates go by`,
    mend: "Have both machines set their clocks by the same time servers.",
  };
}

function checkConnections({ connections, processes }: DatabaseReport): Finding {
  const name = "connections";
  const { max, others, ofProcess } = connections;
  const alive = processes.filter((process) => process.alive).length;
  // Somebody who asks wants to start one, if none runs.
  const gateways = Math.max(1, alive);
  const wanted = gateways * ofProcess + others;
  const counted = `${count(gateways, "gateway")} with up to ${ofProcess} each, and ${others} of others`;
  if (wanted <= max) return { name, level: "ok", text: `${max} can be had: ${counted}` };
  return {
    name,
    level: "warning",
    text: `only ${max} can be had, and ${wanted} may be wanted: ${counted}`,
    mend: "Raise max_connections (and any limit of the user and the database), or run fewer gateways.",
  };
}

function checkSafety({ unsafe }: DatabaseReport): Finding {
  const name = "durability";
  if (unsafe.length === 0) return { name, level: "ok", text: "a commit is on the server's disk" };
  return {
    name,
    level: "warning",
    text: `${unsafe.join(", ")}: what was accepted may be lost when the server crashes or loses power`,
    mend: `Set ${unsafe.map((setting) => setting.replace("= off", "= on")).join(", ")} on the server.`,
  };
}

function checkProcesses({ processes, version }: DatabaseReport, nowMs: number): Finding {
  const name = "gateways";
  const alive = processes.filter((process) => process.alive);
  if (alive.length === 0) return { name, level: "ok", text: "none uses the store now" };
  const each = alive.map((one) => `${one.host} (${one.version}, since ${age(one.startedAt, nowMs)})`);
  const text = `${count(alive.length, "gateway")} alive: ${each.join(", ")}`;
  const versions = new Set([version, ...alive.map((one) => one.version)]);
  if (versions.size === 1) return { name, level: "ok", text };
  return {
    name,
    level: "warning",
    text: `${text}; this program is ${version}`,
    mend: "For the time of an upgrade two versions in a row get on; bring all to the same one.",
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
