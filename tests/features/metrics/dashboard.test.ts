// The Grafana dashboard of the package: each of its queries names existing metrics and labels.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startProcess } from "../../kit/process/gateway-process.ts";
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

const FILE = fileURLToPath(new URL("../../../docs/grafana/parley.json", import.meta.url));
const dashboard = JSON.parse(readFileSync(FILE, "utf8")) as Dashboard;
const METRIC = /\b(?:parley|process)_[a-z_]+\b/g;
/** Labels that Prometheus adds itself. */
const SCRAPED = ["job", "instance"];

const expressions = (): string[] => [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
];

/** Returns the labels that a query names. */
function labelsOf(expr: string): string[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(","));
  const matched = [...expr.matchAll(/[{,](\w+)(?:=~|!=|=)"/g)].map(([, name = ""]) => name);
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

test("a gateway returns every metric of the dashboard, with the labels of its queries", async () => {
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
        expect(Object.keys(first.labels), expr).toEqual(expect.arrayContaining(labelsOf(expr)));
    }
  }
  expect([...types.keys()].filter((name) => !shown.has(name))).toEqual([]);
});
