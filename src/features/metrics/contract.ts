// Defines the method of the metrics.

import { count, type MethodSpec, READ } from "../../contract/methods/parts.ts";
import { about, list, named, nullable, number, type Of, object, oneOf, text } from "../../contract/schema.ts";

const METRICS_HISTORY = named(
  "MetricsHistory",
  "Metrics of this process during the last hour, or since the requested time.",
  object({
    stepMs: number("Interval between two points, in ms."),
    pointsMax: number("Maximum number of points in a series."),
    times: list(number(), "Times of the points in all series, in ms since 1970."),
    series: list(
      object({
        name: text(),
        title: text(),
        unit: oneOf("count", "per_minute", "ms", "bytes", "usd_per_minute"),
        help: text(),
        values: list(nullable(number()), "One value for each of `times`. null: no measurement."),
      }),
    ),
  }),
);
export type MetricsHistory = Of<typeof METRICS_HISTORY>;

export const METRICS_METHODS = {
  "metrics.history": {
    scope: READ,
    everySession: true,
    summary: "Returns metrics of this process during the last hour.",
    params: object({}, { since: about(count(0), "Returns only points after this time, in ms since 1970.") }),
    result: METRICS_HISTORY,
  },
} as const satisfies Record<string, MethodSpec>;
