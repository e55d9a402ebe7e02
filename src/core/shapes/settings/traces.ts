// The settings of traces for all parts.

/** Settings of the traces that are sent to a collector. */
export interface TraceSettings {
  /** Receives OTLP over HTTP. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Share of chains that are traced. */
  readonly sampleRatio: number;
  /** Whether traces contain messages, arguments and results, redacted. */
  readonly content: boolean;
  readonly serviceName: string;
}
