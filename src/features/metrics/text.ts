// Writes metrics in Prometheus' text exposition format 0.0.4.

import type { Sample } from "./figures.ts";

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

/** Escapes the text of a HELP line. */
function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

/** Formats a number: the format knows `+Inf`, `-Inf` and `NaN`. */
function numberText(value: number): string {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}

function linesOf({ name, help, type, samples }: Metric): string {
  const lines = samples.map(({ suffix = "", labels, value }) => {
    const pairs = Object.entries(labels).map(([label, of]) => {
      const text = typeof of === "number" ? numberText(of) : escapeHelp(of).replaceAll('"', '\\"');
      return `${label}="${text}"`;
    });
    const set = pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
    return `${name}${suffix}${set} ${numberText(value)}\n`;
  });
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** Returns the text of these metrics, each with its own HELP and TYPE lines. */
export function exposition(metrics: readonly Metric[]): string {
  return metrics.map(linesOf).join("\n");
}
