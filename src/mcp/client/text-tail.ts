/** The end of a text that arrives in pieces, in whole lines, within a fixed budget. */
export class TextTail {
  readonly #lines: string[] = [];
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-MAX_LINE);
    for (const line of lines) this.#keep(line);
  }

  /** What came after the last line break counts as a line. */
  end(): void {
    if (this.#rest !== "") this.#keep(this.#rest);
    this.#rest = "";
  }

  last(count: number): string[] {
    return [...this.#lines, ...(this.#rest === "" ? [] : [this.#rest])].slice(-count);
  }

  #keep(line: string): void {
    const text = line.slice(0, MAX_LINE).trimEnd();
    if (text === "") return;
    this.#lines.push(text);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
    this.#onLine(text);
  }
}

const MAX_LINE = 2_000;
const MAX_LINES = 50;
