// Parses metrics as strictly as a Prometheus server: every line, label and histogram.

export interface Exposed {
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  readonly samples: readonly {
    readonly name: string;
    readonly labels: Record<string, string>;
    value: number;
  }[];
  /** Returns the value of the sample with these labels, or undefined if there is none. */
  value(name: string, labels?: Record<string, string>): number | undefined;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/;

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\]|\\[\\n])*)$/;

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== "") {
    const found = LABEL.exec(rest);
    if (found === null) throw new Error(`no labels: ${text}`);
    const [whole, name = "", value = ""] = found;
    if (name in labels) throw new Error(`twice the label ${name}: ${text}`);
    labels[name] = unescaped(value);
    rest = rest.slice(whole.length);
  }
  return labels;
}

function numberOf(text: string): number {
  if (text === "NaN") return Number.NaN;
  const value = /^[+-]Inf$/.test(text) ? Number(text.replace("Inf", "Infinity")) : Number(text);
  if (text === "" || Number.isNaN(value) || /^-?Infinity$/.test(text)) throw new Error(`no number: ${text}`);
  return value;
}

export function readExposition(text: string): Exposed {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  const samples: { name: string; labels: Record<string, string>; value: number }[] = [];
  const seen = new Set<string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    if (line.startsWith("# HELP ")) {
      const [, name = "", help = ""] = HELP.exec(line) ?? [];
      if (name === "" || helps.has(name) || types.has(name)) throw new Error(`no help, or twice: ${line}`);
      helps.set(name, unescaped(help));
      continue;
    }
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
    // The lines of a metric must follow its type directly.
    if ([...types.keys()].at(-1) !== base) throw new Error(`not below its type: ${line}`);
    if (seen.has(`${name}{${labels}}`)) throw new Error(`twice: ${line}`);
    seen.add(`${name}{${labels}}`);
    samples.push({ name, labels: labelsOf(labels), value: numberOf(value) });
  }
  const fits = (has: Record<string, string>, wanted: Record<string, string>) =>
    Object.entries(wanted).every(([name, value]) => has[name] === value);
  return {
    types,
    helps,
    samples,
    value: (name, labels = {}) => samples.find((one) => one.name === name && fits(one.labels, labels))?.value,
  };
}

/** Finds errors in histograms: decreasing buckets or bounds, no last bucket, no sum, or a wrong count. */
export function histogramFaults({ types, samples }: Exposed): string[] {
  const faults: string[] = [];
  for (const [name] of [...types].filter(([, type]) => type === "histogram")) {
    const groups = new Map<string, { readonly le: number; readonly value: number }[]>();
    for (const { name: its, labels, value } of samples) {
      if (its !== `${name}_bucket`) continue;
      const { le = "", ...rest } = labels;
      const key = JSON.stringify(rest);
      groups.set(key, [...(groups.get(key) ?? []), { le: numberOf(le), value }]);
    }
    for (const [key, buckets] of groups) {
      const other = (suffix: string) =>
        samples.find((one) => one.name === `${name}${suffix}` && JSON.stringify(one.labels) === key)?.value;
      const falls = buckets.some(({ le, value }, at) => {
        const before = buckets[at - 1];
        return before !== undefined && (value < before.value || le <= before.le);
      });
      const last = buckets.at(-1);
      const isWhole = last?.le === Number.POSITIVE_INFINITY && last.value === other("_count");
      if (falls || !isWhole || other("_sum") === undefined)
        faults.push(`${name}${key}: ${JSON.stringify(buckets)} of ${other("_count")}`);
    }
  }
  return faults;
}
