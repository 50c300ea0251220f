type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount?: number, labels?: Labels): void;
  /** By the values of its labels, joined by a comma where there are several. */
  values(): Record<string, number>;
}

export interface Histogram {
  observe(value: number): void;
  read(): HistogramReading;
}

export interface HistogramReading {
  readonly count: number;
  readonly sum: number;
  /** Cumulative; the last bound is infinite. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** Numbers of this process, as Prometheus reads them. */
export interface Registry {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string, bounds: readonly number[]): Histogram;
  /** Read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** The text format 0.0.4. */
  toText(): string;
}

export function createRegistry(): Registry {
  const families: (() => string)[] = [];
  const family = (name: string, help: string, type: string, lines: () => string[]): void => {
    families.push(() => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines(), ""].join("\n"));
  };

  return {
    counter(name, help) {
      const series = new Map<string, { labels: Labels; value: number }>();
      family(name, help, "counter", () =>
        series.size === 0 ? [`${name} 0`] : [...series.values()].map(({ labels, value }) => `${name}${toLabels(labels)} ${value}`),
      );
      return {
        add(amount = 1, labels = {}) {
          const key = JSON.stringify(labels);
          const found = series.get(key);
          if (found === undefined) series.set(key, { labels, value: amount });
          else found.value += amount;
        },
        values: () => Object.fromEntries([...series.values()].map(({ labels, value }) => [Object.values(labels).join(","), value])),
      };
    },
    histogram(name, help, bounds) {
      const counts = Array.from({ length: bounds.length + 1 }, () => 0);
      let sum = 0;
      const read = (): HistogramReading => {
        let count = 0;
        const buckets = [...bounds, Infinity].map((le, index) => ({ le, count: (count += counts[index]!) }));
        return { count, sum, buckets };
      };
      family(name, help, "histogram", () => {
        const { count, buckets } = read();
        const lines = buckets.map(({ le, count: below }) => `${name}_bucket{le="${le === Infinity ? "+Inf" : le}"} ${below}`);
        return [...lines, `${name}_sum ${sum}`, `${name}_count ${count}`];
      });
      return {
        observe(value) {
          const at = bounds.findIndex((bound) => value <= bound);
          counts[at === -1 ? bounds.length : at]! += 1;
          sum += value;
        },
        read,
      };
    },
    gauge: (name, help, read) => family(name, help, "gauge", () => [`${name} ${read()}`]),
    toText: () => families.map((write) => write()).join(""),
  };
}

function toLabels(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
