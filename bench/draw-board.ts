// Draws the Grafana dashboard of docs/grafana with the values that Prometheus has for its queries while a
// real gateway works for a few minutes. Grafana itself does not run here: its look is imitated.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { cleanup, temporaryFolder } from "../tests/kit/engine/engine.ts";
import { freePort } from "../tests/kit/loopback.ts";
import { startProcess } from "../tests/kit/process/gateway-process.ts";
import { until } from "../tests/kit/until.ts";
import { plain } from "./plot.ts";

/** How long the gateway works, and the time that the board shows. */
const LOAD_MS = 180_000;
const RATE_INTERVAL = "15s";
const STEP_S = 2;
/** The board's rows up to this line are drawn, in units of its grid. */
const LINES = 48;
/** Width and height in pixels of a unit of the board's grid. */
const [UNIT, LINE] = [50, 30];

interface Panel {
  readonly type: "row" | "stat" | "timeseries";
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly custom?: { readonly stacking?: { mode: string } } };
  };
}

interface Series {
  readonly name: string;
  /** Time in seconds, and value. */
  readonly points: readonly (readonly [number, number])[];
}

interface Drawn {
  readonly panel: Panel;
  readonly series: readonly Series[];
}

interface Found {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly values: readonly (readonly [number, string])[];
    }[];
  };
}

function startProgram(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
  cleanup(async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
  });
  return child;
}

/** Starts a gateway with three agents on priced models. The model server is a process of its own. */
async function startGateway() {
  const model = startProgram(process.execPath, [join(import.meta.dirname, "quick-model.ts")]);
  const [line] = (await once(model.stdout as NonNullable<typeof model.stdout>, "data")) as [Buffer];
  const priced = (id: string, input: number) => ({
    id,
    contextWindow: 200_000,
    cost: { input, output: 5 * input },
  });
  const provider = {
    ...{ api: "openai-completions", baseUrl: line.toString().trim(), apiKey: "a-key" },
    models: [priced("large", 3), priced("small", 0.4)],
  };
  const agents = [
    { id: "main", default: true, model: "acme/large" },
    { id: "research", model: "acme/large" },
    { id: "ops", model: "acme/small", tools: { deny: ["exec"] } },
  ];
  return startProcess({
    config: {
      agents: { defaults: { maxConcurrent: 6 }, list: agents },
      models: { providers: { acme: provider } },
      tools: {
        sessions: { visibility: "all" },
        agentToAgent: { enabled: true },
        exec: { approval: "never" },
      },
      labels: { mode: "off" },
    },
  });
}

/** Starts a Prometheus that reads the gateway's metrics once a second. Returns its address. */
async function startPrometheus(gatewayUrl: string, token: string): Promise<string> {
  const folder = temporaryFolder();
  const port = await freePort();
  const config = {
    global: { scrape_interval: "1s" },
    scrape_configs: [
      {
        job_name: "parley",
        authorization: { credentials: token },
        static_configs: [{ targets: [new URL(gatewayUrl).host] }],
      },
    ],
  };
  // JSON is YAML.
  writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config));
  startProgram("prometheus", [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  const url = `http://127.0.0.1:${port}`;
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady);
  return url;
}

/** Sends messages for a while: more and fewer, short and long, with tool calls that succeed or fail. */
async function work(client: GatewayClient): Promise<void> {
  const call = (tool: string, args: object): string => `call ${tool} ${JSON.stringify(args)}`;
  const ask = { sessionKey: "agent:research:main", message: "hello", timeoutSeconds: 20 };
  const messages = [
    "stream 60 40",
    call("sessions_send", ask),
    call("sessions_list", {}),
    call("exec", { command: "true" }),
    "stream 20 30",
    call("exec", { command: "cat missing.txt" }),
    call("sessions_send", { ...ask, sessionKey: "agent:nobody:main" }),
    call("sessions_history", { sessionKey: "agent:main:main" }),
  ];
  const keys = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const agentId = ["main", "research", "ops"][at % 3] ?? "main";
      return (await client.request("sessions.create", { agentId })).key;
    }),
  );
  const ends: Promise<unknown>[] = [];
  const end = Date.now() + LOAD_MS;
  for (let at = 0; Date.now() < end; at += 1) {
    const message = messages[at % messages.length] ?? "";
    ends.push(client.agent({ sessionKey: keys[(at * 5) % keys.length] ?? "", message }).done);
    // Swells and calms down every 80 messages.
    await new Promise((resolve) => setTimeout(resolve, 350 + 300 * Math.sin(at / 13)));
  }
  await Promise.all(ends);
}

async function readSeries(url: string, { targets = [] }: Panel): Promise<Series[]> {
  const end = Math.floor(Date.now() / 1_000);
  const groups = await Promise.all(
    targets.map(async ({ expr, legendFormat }) => {
      const query = expr
        .replaceAll(/\$(?:job|instance)\b/g, ".*")
        .replaceAll("$__rate_interval", RATE_INTERVAL);
      const span = { query, start: String(end - LOAD_MS / 1_000), end: String(end), step: String(STEP_S) };
      const answer = await fetch(`${url}/api/v1/query_range?${new URLSearchParams(span)}`);
      const { data } = (await answer.json()) as Found;
      return data.result.map(({ metric, values }) => ({
        name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ""),
        points: values
          .map(([at, value]) => [at, Number(value)] as const)
          .filter(([, value]) => !Number.isNaN(value)),
      }));
    }),
  );
  return groups.flat().filter(({ points }) => points.length > 0);
}

const STYLE = `
  body { margin: 0; font: 12px/1.3 system-ui, "DejaVu Sans", sans-serif; color: #ccccdc; background: #111217 }
  #board { position: relative; width: ${24 * UNIT}px; height: ${LINES * LINE + 8}px; background: #111217 }
  .panel { position: absolute; box-sizing: border-box; padding: 6px 8px; overflow: hidden;
    background: #181b1f; border: 1px solid #26292f; border-radius: 2px }
  .row { position: absolute; font-size: 15px; font-weight: 600; padding: 5px 4px; box-sizing: border-box }
  h2 { font-size: 13px; font-weight: 500; margin: 0 }
  .big { font-size: 36px; font-weight: 500; text-align: center; color: #73bf69; margin-top: 16px }
  .none { text-align: center; color: #8e8e9a; margin-top: 60px }
  .legend { display: flex; flex-wrap: wrap; gap: 0 12px; height: 34px; overflow: hidden; color: #c7d0d9 }
  .legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 5px;
    vertical-align: middle }
  svg text { font-size: 11px; fill: #9fa7b3 }
`;

const COLOURS = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#e0b400"];

const colourAt = (index: number): string => COLOURS[index % COLOURS.length] ?? "";

function withUnit(value: number, unit = "short"): string {
  const rounded = (one: number): string => String(Number(one.toPrecision(3)));
  if (unit === "s") return value < 1 ? `${rounded(value * 1_000)} ms` : `${rounded(value)} s`;
  if (unit === "ops") return `${rounded(value)} ops/s`;
  if (unit === "percentunit") return `${rounded(value * 100)}%`;
  if (unit === "currencyUSD") return `$${rounded(value)}`;
  return rounded(value);
}

/** Returns a round step of an axis that has about four ticks up to `high`. */
function tickStep(high: number): number {
  const power = 10 ** Math.floor(Math.log10(high / 4));
  return ([1, 2, 5].find((one) => one * power >= high / 4) ?? 10) * power;
}

function plotPanel({ panel, series }: Drawn, width: number, height: number): string {
  const { unit, custom } = panel.fieldConfig?.defaults ?? {};
  const isStacked = custom?.stacking?.mode === "normal";
  const below = new Map<number, number>();
  const lines = series.map(({ points }) =>
    points.map(([at, value]) => {
      const base = isStacked ? (below.get(at) ?? 0) : 0;
      below.set(at, base + value);
      return { at, base, top: base + value };
    }),
  );
  const most = Math.max(...lines.flat().map(({ top }) => top)) || 1;
  const step = tickStep(most);
  const high = step * Math.ceil(most / step);
  const times = [...below.keys()];
  const [left, bottom, first, last] = [62, height - 20, Math.min(...times), Math.max(...times)];
  const x = (at: number): string =>
    (left + ((at - first) / (last - first || 1)) * (width - left - 4)).toFixed(1);
  const y = (value: number): string => (bottom - (value / high) * (bottom - 6)).toFixed(1);
  const ticks = Array.from({ length: Math.round(high / step) + 1 }, (_, at) => at * step);
  const minutes = Array.from({ length: Math.floor(last / 60) - Math.floor(first / 60) }, (_, at) => {
    return (Math.floor(first / 60) + 1 + at) * 60;
  });
  return [
    `<svg width="${width}" height="${height}">`,
    ...ticks.map(
      (value) =>
        `<path d="M${left} ${y(value)}H${width}" stroke="#2a2d33"/>` +
        `<text x="${left - 6}" y="${y(value)}" dy="4" text-anchor="end">${withUnit(value, unit)}</text>`,
    ),
    ...minutes.map((at) => {
      const time = new Date(at * 1_000).toISOString().slice(11, 16);
      return `<text x="${x(at)}" y="${height - 4}" text-anchor="middle">${time}</text>`;
    }),
    ...lines.map((line, index) => {
      const top = line.map((one) => `${x(one.at)},${y(one.top)}`).join(" ");
      const base = line.map((one) => `${x(one.at)},${y(one.base)}`).reverse();
      return (
        `<polygon points="${top} ${base.join(" ")}" fill="${colourAt(index)}" fill-opacity=".16"/>` +
        `<polyline points="${top}" fill="none" stroke="${colourAt(index)}" stroke-width="1.3"/>`
      );
    }),
    "</svg>",
  ].join("");
}

function renderPanel(drawn: Drawn): string {
  const { panel, series } = drawn;
  const { x, y, w, h } = panel.gridPos;
  const [width, height] = [w * UNIT - 8, h * LINE - 8];
  const place = `left:${x * UNIT + 4}px;top:${y * LINE + 4}px;width:${width}px;height:${height}px`;
  if (panel.type === "row") return `<div class="row" style="${place}">${plain(panel.title)}</div>`;
  const newest = series[0]?.points.at(-1)?.[1];
  const names = series.map(({ name }, index) => {
    return `<span><i style="background:${colourAt(index)}"></i>${plain(name)}</span>`;
  });
  const plotted = (): string =>
    `${plotPanel(drawn, width - 18, height - 68)}<div class="legend">${names.join("")}</div>`;
  const big = (value: number): string =>
    `<div class="big">${withUnit(value, panel.fieldConfig?.defaults.unit)}</div>`;
  const content =
    newest === undefined ? '<p class="none">No data</p>' : panel.type === "stat" ? big(newest) : plotted();
  return `<section class="panel" style="${place}"><h2>${plain(panel.title)}</h2>${content}</section>`;
}

/** Returns a picture of the board's upper part, as PNG. */
export async function drawBoard(page: Page): Promise<Buffer> {
  const gateway = await startGateway();
  const prometheus = await startPrometheus(gateway.httpUrl, gateway.token);
  await work(await gateway.connect());
  const file = new URL("../docs/grafana/parley.json", import.meta.url);
  const { panels } = JSON.parse(readFileSync(file, "utf8")) as { panels: Panel[] };
  const upper = panels.filter(({ gridPos }) => gridPos.y < LINES);
  const all = await Promise.all(
    upper.map(async (panel) => ({ panel, series: await readSeries(prometheus, panel) })),
  );
  await page.setContent(`<style>${STYLE}</style><main id="board">${all.map(renderPanel).join("")}</main>`);
  return page.locator("#board").screenshot();
}
