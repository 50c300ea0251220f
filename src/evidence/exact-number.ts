/** A number whose text says more than a JavaScript number holds. It is written as JSON with all its digits. */
export class ExactNumber {
  readonly source: string;
  readonly rounded: number;

  private constructor(source: string, rounded: number) {
    this.source = source;
    this.rounded = rounded;
  }

  /** The number itself where it holds everything, else one that remembers its text. */
  static where(value: number, source: string): number | ExactNumber {
    return source.length < 16 || String(value) === source ? value : new ExactNumber(source, value);
  }

  toJSON(): unknown {
    return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(this.source);
  }
}
