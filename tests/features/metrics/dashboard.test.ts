// The Grafana dashboard and the alerts of the package: each of their queries names existing metrics and labels,
// and promtool raises each alert.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { startProcess } from "../../kit/process/gateway-process.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { readExposition } from "./exposition.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}

const pathOf = (name: string): string => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const dashboard = JSON.parse(readFileSync(pathOf("docs/grafana/parley.json"), "utf8")) as Dashboard;
const ALERTS = pathOf("docs/grafana/alerts.yml");
/** Faults of a gateway, and the alerts that they raise, in the form of `promtool test rules`. */
const FAULTS = pathOf("tests/deploy/alerts.yml");
const alerts = (parse(readFileSync(ALERTS, "utf8")) as Alerts).groups.flatMap(({ rules }) => rules);
const METRIC = /\b(?:parley|process)_[a-z_]+\b/g;
/** Labels that Prometheus adds itself. */
const SCRAPED = ["job", "instance"];

const expressions = (): string[] => [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
  // Prometheus itself makes the metric of the first alert.
  ...alerts.map(({ expr }) => expr).filter((expr) => !expr.startsWith("up{")),
];

/** Returns the labels of a metric that a query names: those of its groups, and those of its selectors. */
function labelsOf(expr: string, metric: string): string[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(","));
  const selectors = [...expr.matchAll(new RegExp(`\\b${metric}\\{([^}]*)`, "g"))].map(
    ([, text = ""]) => text,
  );
  const matched = selectors.flatMap((text) =>
    [...text.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, name = ""]) => name),
  );
  return [...grouped, ...matched].map((name) => name.trim()).filter((name) => !SCRAPED.includes(name));
}

/** Returns the metrics of a gateway that has executed, refused and delivered something. */
async function exposition() {
  const gateway = await startProcess();
  const client = await gateway.connect();
  for (const message of ["list sessions", "ask nobody: are you there?", "spawn: say hello"]) {
    await client.agent({ message, idempotencyKey: message }).done;
  }
  const read = async () => {
    const headers = { authorization: `Bearer ${gateway.token}` };
    return readExposition(await (await fetch(`${gateway.httpUrl}/metrics`, { headers })).text());
  };
  const told = async () => (await read()).value("parley_event_loop_delay_seconds", { quantile: "0.5" });
  await expect.poll(told).toBeDefined();
  return read();
}

test("a gateway returns every metric of the dashboard and the alerts, with the labels of its queries", async () => {
  const { types, samples } = await exposition();
  const base = (name: string): string => (types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ""));
  const shown = new Set<string>();
  for (const expr of expressions()) {
    const names = expr.match(METRIC) ?? [];
    expect(names, expr).not.toHaveLength(0);
    for (const name of names) {
      shown.add(base(name));
      expect(types.has(base(name)), `${name} in ${expr}`).toBe(true);
      const first = samples.find((sample) => sample.name === name);
      // A metric has no sample before its event has happened.
      if (first !== undefined)
        expect(Object.keys(first.labels), expr).toEqual(expect.arrayContaining(labelsOf(expr, name)));
    }
  }
  expect([...types.keys()].filter((name) => !shown.has(name))).toEqual([]);
});

// Skipped on machines without Prometheus.
test.skipIf(lacks("promtool"))("each fault raises its alert, and a healthy gateway raises none", () => {
  execFileSync("promtool", ["check", "rules", ALERTS]);
  const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", FAULTS], { encoding: "utf8" });
  expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
  const tried = readFileSync(FAULTS, "utf8");
  expect(alerts.length).toBeGreaterThan(5);
  for (const { alert } of alerts) expect(tried.split(alert), alert).toHaveLength(3);
});
