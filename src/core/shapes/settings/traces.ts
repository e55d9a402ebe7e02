// The shape of the settings for traces.

/** Settings of the traces that are sent to a collector. */
export interface TraceSettings {
  /** URL that receives OTLP over HTTP. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Fraction of chains that are traced, from 0 to 1. */
  readonly sampleRatio: number;
  /** Whether traces contain redacted messages, arguments and results. */
  readonly content: boolean;
  readonly serviceName: string;
}
