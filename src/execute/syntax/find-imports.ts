import type { PythonToken } from "./tokenize-python.ts";

export interface ScriptImport {
  /** Dotted, as written. */
  readonly module: string;
  readonly line: number;
  /** In the body of a `try`: the script says that it can do without. */
  readonly isGuarded: boolean;
}

export function findImports(tokens: readonly PythonToken[]): ScriptImport[] {
  const found: ScriptImport[] = [];
  for (const { words, guarded } of toStatements(tokens)) {
    const [first, ...rest] = words;
    if (first?.text === "import") {
      for (const part of split(rest)) add(part);
    } else if (first?.text === "from") {
      add(
        rest.slice(
          0,
          rest.findIndex(({ text }) => text === "import"),
        ),
      );
    }

    function add(part: readonly PythonToken[]): void {
      const end = part.findIndex(({ text }) => text === "as");
      const module = (end < 0 ? part : part.slice(0, end)).map(({ text }) => text).join("");
      if (/^[^.]/.test(module)) found.push({ module, line: part[0]?.line ?? first!.line, isGuarded: guarded });
    }
  }
  return found;
}

interface Statement {
  readonly words: readonly PythonToken[];
  readonly guarded: boolean;
}

/** Simple statements with what stands around them; the header of a block is one too, without its colon. */
function* toStatements(tokens: readonly PythonToken[]): Generator<Statement> {
  const blocks: boolean[] = [];
  let tries = 0;
  let words: PythonToken[] = [];
  let header = false;
  let inline = false;
  const isGuarded = (): boolean => inline || tries > 0;

  for (const token of tokens) {
    if (token.kind === "indent") {
      blocks.push(header);
      if (header) tries += 1;
    } else if (token.kind === "dedent") {
      if (blocks.pop()) tries -= 1;
    } else if (token.kind === "newline") {
      yield { words, guarded: isGuarded() };
      header = inline;
      words = [];
      inline = false;
    } else if (token.depth === 0 && token.text === ";") {
      yield { words, guarded: isGuarded() };
      words = [];
    } else if (
      token.depth === 0 &&
      token.text === ":" &&
      /^(?:try|else|finally|except|if|elif|for|while|with|async|def|class)$/.test(words[0]?.text ?? "")
    ) {
      inline = words[0]?.text === "try";
      words = [];
    } else words.push(token);
  }
}

function split(tokens: readonly PythonToken[]): PythonToken[][] {
  const parts: PythonToken[][] = [[]];
  for (const token of tokens) {
    if (token.text === ",") parts.push([]);
    else parts.at(-1)!.push(token);
  }
  return parts;
}
