// Counters and histograms with labels, in memory. `metrics.ts` defines the list of metrics.
// FI1: a figure has at most LABEL_SETS_MAX sets of labels; others are counted as "other", so that no input
// makes the memory grow.
// Counting costs a look-up and an addition: no package is loaded, and nothing is written.

/** Maximum number of label sets of one figure, including "other". */
const LABEL_SETS_MAX = 200;
/** Maximum characters of a label's value. */
const LABEL_MAX_CHARS = 100;
const OTHER = "other";
/** Maximum number of observations that a histogram keeps individually, over all label sets. */
const NEWEST_MAX = 512;

export interface FigureSpec {
  /** The metric's name in Prometheus, with its unit at the end. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Added to the figure's name. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
}

/** Rows by the values of their labels. Their number is limited (FI1). */
class Rows<T> {
  readonly #labels: readonly string[];
  readonly #make: () => T;
  readonly #rows = new Map<string, { readonly values: readonly string[]; readonly row: T }>();

  constructor(labels: readonly string[], make: () => T) {
    this.#labels = labels;
    this.#make = make;
    if (labels.length === 0) this.of([]);
  }

  of(given: readonly string[]): T {
    const values = given.map((value) => value.slice(0, LABEL_MAX_CHARS).toWellFormed());
    const known = this.#rows.get(values.join("\n"));
    if (known !== undefined) return known.row;
    const full = this.#rows.size >= LABEL_SETS_MAX - 1;
    const kept = full ? values.map(() => OTHER) : values;
    const key = kept.join("\n");
    const found = this.#rows.get(key) ?? { values: kept, row: this.#make() };
    this.#rows.set(key, found);
    return found.row;
  }

  all(): { readonly labels: Record<string, string>; readonly row: T }[] {
    return [...this.#rows.values()].map(({ values, row }) => ({
      labels: Object.fromEntries(this.#labels.map((label, at) => [label, values[at] ?? ""])),
      row,
    }));
  }
}

/** A number that only rises. */
export class Counter {
  readonly spec: FigureSpec;
  readonly type = "counter";
  readonly #rows: Rows<{ value: number }>;

  constructor(spec: FigureSpec) {
    this.spec = spec;
    this.#rows = new Rows(spec.labels, () => ({ value: 0 }));
  }

  /** `labels`: values in the order of the spec. */
  add(value: number, ...labels: readonly string[]): void {
    // A provider's wrong count must not make a counter fall.
    if (value >= 0) this.#rows.of(labels).value += value;
  }

  /** Returns the sum over all label sets, or over those that `wanted` admits. */
  total(wanted: (labels: Readonly<Record<string, string>>) => boolean = () => true): number {
    return this.#rows.all().reduce((sum, { labels, row }) => sum + (wanted(labels) ? row.value : 0), 0);
  }

  samples(): Sample[] {
    return this.#rows.all().map(({ labels, row: { value } }) => ({ labels, value }));
  }
}

interface Spread {
  readonly counts: number[];
  sum: number;
}

/** The distribution of values; the newest ones are kept individually. */
export class Histogram {
  readonly spec: FigureSpec;
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #now: () => number;
  readonly #rows: Rows<Spread>;
  readonly #values = new Float64Array(NEWEST_MAX);
  readonly #times = new Float64Array(NEWEST_MAX);
  #observed = 0;

  /**
   * `bounds`: ascending upper bounds of the buckets; a bucket without an upper bound is added. `now`:
   * monotonic milliseconds.
   */
  constructor(spec: FigureSpec, bounds: readonly number[], now: () => number) {
    this.spec = spec;
    this.#bounds = bounds;
    this.#now = now;
    this.#rows = new Rows(spec.labels, () => ({ counts: new Array(bounds.length + 1).fill(0), sum: 0 }));
  }

  observe(value: number, ...labels: readonly string[]): void {
    const spread = this.#rows.of(labels);
    const at = this.#bounds.findIndex((bound) => value <= bound);
    const place = at < 0 ? this.#bounds.length : at;
    spread.counts[place] = (spread.counts[place] ?? 0) + 1;
    spread.sum += value;
    this.#values[this.#observed % NEWEST_MAX] = value;
    this.#times[this.#observed % NEWEST_MAX] = this.#now();
    this.#observed += 1;
  }

  /** Returns the quantile `share` (0 to 1) of the kept values of the last `ms`, or null if there are none. */
  quantile(share: number, ms: number): number | null {
    const since = this.#now() - ms;
    const kept = Math.min(this.#observed, NEWEST_MAX);
    const newest = this.#values.subarray(0, kept).filter((_, at) => (this.#times[at] ?? 0) >= since);
    if (newest.length === 0) return null;
    newest.sort();
    return newest[Math.min(newest.length - 1, Math.floor(share * newest.length))] ?? null;
  }

  samples(): Sample[] {
    return this.#rows.all().flatMap(({ labels, row: { counts, sum } }) => {
      let below = 0;
      const buckets = counts.map((count, at): Sample => {
        below += count;
        const le = this.#bounds[at] ?? Number.POSITIVE_INFINITY;
        return { suffix: "_bucket", labels: { ...labels, le }, value: below };
      });
      return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: below }];
    });
  }
}
