// Reads what a Prometheus server reads, as strictly as one: every line, every label, every histogram.

export interface Exposed {
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly {
    readonly name: string;
    readonly labels: Record<string, string>;
    value: number;
  }[];
  /** The value of a sample with these labels; undefined: there is none. */
  value(name: string, labels?: Record<string, string>): number | undefined;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/;

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== "") {
    const found = LABEL.exec(rest);
    if (found === null) throw new Error(`no labels: ${text}`);
    const [whole, name = "", value = ""] = found;
    if (name in labels) throw new Error(`twice the label ${name}: ${text}`);
    labels[name] = value.replaceAll(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
    rest = rest.slice(whole.length);
  }
  return labels;
}

function numberOf(text: string): number {
  const value = text === "+Inf" ? Number.POSITIVE_INFINITY : Number(text);
  if (text === "" || Number.isNaN(value)) throw new Error(`no number: ${text}`);
  return value;
}

export function readExposition(text: string): Exposed {
  const types = new Map<string, string>();
  const samples: { name: string; labels: Record<string, string>; value: number }[] = [];
  const seen = new Set<string>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ")) continue;
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      if (types.has(type[1] ?? "")) throw new Error(`twice: ${line}`);
      types.set(type[1] ?? "", type[2] ?? "");
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (sample === null) throw new Error(`no sample: ${line}`);
    const [, name = "", labels = "", value = ""] = sample;
    const base = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    if (!types.has(base)) throw new Error(`without a type: ${line}`);
    if (seen.has(`${name}{${labels}}`)) throw new Error(`twice: ${line}`);
    seen.add(`${name}{${labels}}`);
    samples.push({ name, labels: labelsOf(labels), value: numberOf(value) });
  }
  const fits = (has: Record<string, string>, wanted: Record<string, string>) =>
    Object.entries(wanted).every(([name, value]) => has[name] === value);
  return {
    types,
    samples,
    value: (name, labels = {}) => samples.find((one) => one.name === name && fits(one.labels, labels))?.value,
  };
}

/** Finds errors in the histograms: falling buckets, or a count that differs from the last bucket's. */
export function histogramFaults({ types, samples }: Exposed): string[] {
  const faults: string[] = [];
  for (const [name] of [...types].filter(([, type]) => type === "histogram")) {
    const groups = new Map<string, number[]>();
    for (const { name: its, labels, value } of samples) {
      if (its !== `${name}_bucket`) continue;
      const { le: _, ...rest } = labels;
      const key = JSON.stringify(rest);
      groups.set(key, [...(groups.get(key) ?? []), value]);
    }
    for (const [key, buckets] of groups) {
      const count = samples.find(
        (one) => one.name === `${name}_count` && JSON.stringify(one.labels) === key,
      )?.value;
      const falls = buckets.some((value, at) => value < (buckets[at - 1] ?? 0));
      if (falls || buckets.at(-1) !== count) faults.push(`${name}${key}: ${buckets} of ${count}`);
    }
  }
  return faults;
}
