// Owns the settings of traces, as the rest of the program sees them.

/** What is told of runs to a collector of traces. */
export interface TraceSettings {
  /** Takes OTLP over HTTP. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of chains that are told of. */
  readonly sampleRatio: number;
  /** Whether messages, arguments and results are told, masked. */
  readonly content: boolean;
  readonly serviceName: string;
}
