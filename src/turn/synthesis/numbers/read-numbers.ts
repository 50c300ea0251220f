/** A number as it stands in a text. */
export interface WrittenNumber {
  readonly text: string;
  /** What it can mean: `1,234` is 1234 to some and 1.234 to others. Never negative. */
  readonly values: readonly WrittenValue[];
}

export interface WrittenValue {
  readonly value: number;
  /** One in the last place that was written: the zeros at the end of 12,000 may be rounding. */
  readonly unit: number;
}

const scales: Readonly<Record<string, number>> = {
  ...{ k: 1e3, K: 1e3, thousand: 1e3 },
  ...{ M: 1e6, m: 1e6, mn: 1e6, mio: 1e6, million: 1e6 },
  ...{ B: 1e9, bn: 1e9, billion: 1e9 },
  ...{ T: 1e12, tn: 1e12, trillion: 1e12 },
};
const suffixes = ["%", "‰", "percent", "per cent", "bps?", "pp", "x", ...Object.keys(scales)].join("|");
const NUMBER = new RegExp(
  [
    String.raw`(?<![\p{L}\p{N}_])(?<!\d[.,])`,
    String.raw`(\d{1,3}(?:[ '\u2019\u00a0\u202f_]\d{3})+(?:[.,]\d+)?|\d[\d.,]*\d|\d)(?:[eE]([+-]?\d{1,3}))?`,
    String.raw`(?:\s?(${suffixes})(?![\p{L}\p{N}_])|(?![\p{L}\p{N}_]))`,
  ].join(""),
  "gu",
);

/** Every number of a text that stands by itself; not those in names, as `Q1` or `result_2`. */
export function readNumbers(text: string): WrittenNumber[] {
  return [...text.matchAll(NUMBER)].flatMap(([whole, digits = "", exponent = "0", suffix = ""]) => {
    const bare = readings(digits).map((one) => times(one, 10 ** Number(exponent)));
    const scale = scales[suffix];
    // 12m may also be metres or minutes
    const values = scale === undefined ? bare : bare.flatMap((one) => [one, times(one, scale)]);
    return values.length === 0 ? [] : [{ text: whole, values }];
  });
}

function times({ value, unit }: WrittenValue, factor: number): WrittenValue {
  return { value: value * factor, unit: unit * factor };
}

function readings(digits: string): WrittenValue[] {
  const plain = digits.replaceAll(/[ '\u2019\u00a0\u202f_](?=\d{3})/g, "");
  const found = new Map<number, WrittenValue>();
  const add = (text: string): void => {
    if (!/^\d+(?:\.\d+)?$/.test(text)) return;
    const value = Number(text);
    found.set(value, { value, unit: unitOf(text) });
  };
  add(plain); // 1234.5
  add(plain.replace(",", ".")); // 1234,5
  if (/^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(plain)) add(plain.replaceAll(",", "")); // 1,234.5
  if (/^\d{1,3}(?:\.\d{3})+(?:,\d+)?$/.test(plain)) add(plain.replaceAll(".", "").replace(",", ".")); // 1.234,5
  return [...found.values()];
}

function unitOf(text: string): number {
  const [whole = "", fraction] = text.split(".");
  if (fraction !== undefined) return 10 ** -fraction.length;
  const zeros = /0*$/.exec(whole)![0].length;
  return 10 ** Math.min(zeros, whole.length - 1);
}
