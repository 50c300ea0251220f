/** One module that the code imports, where, and whether it goes on without it. */
export interface FoundImport {
  /** Dotted, as written; empty for `from . import x`. */
  readonly module: string;
  /** What `from module import …` names. */
  readonly names: readonly string[];
  /** Dots in front of a relative import. */
  readonly level: number;
  readonly line: number;
  readonly column: number;
  /** In a `try` whose `except` takes ImportError, under `suppress(ImportError)` or `if TYPE_CHECKING`. */
  readonly guarded: boolean;
}

interface Token {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** What stands around an import; a `try` learns only later whether it guards. */
interface Guard {
  guards: boolean;
}

const guardingErrors = new Set(["ImportError", "ModuleNotFoundError", "Exception", "BaseException"]);

/**
 * Reads the imports from the parser's list of tokens (`Identifier 7..9`, a line each, in bytes of UTF-8). Strings and comments are single
 * tokens there, so nothing in them is taken for an import.
 */
export function findImports(code: string, tokenText: string): FoundImport[] {
  const source = Buffer.from(code, "utf8");
  const text = ({ start, end }: Token): string => source.toString("utf8", start, end).normalize("NFKC");
  const found: { offset: number; module: string; names: string[]; level: number; guards: Guard[] }[] = [];
  const blocks: (Guard | null)[] = [];
  const tries = new Map<number, Guard>();
  const importers = new Set(["__import__", "import_module"]);
  let header: Guard | null = null;

  for (const line of logicalLines(tokenText)) {
    for (const indentation of line.indentation) {
      if (indentation === "Indent") blocks.push(header);
      else blocks.pop();
    }
    header = guardOf(line.tokens);
    const guards = [...blocks, header].filter((guard) => guard !== null);
    collect(line.tokens, guards);
  }
  const locate = createLocator(source);
  return found
    .sort((a, b) => a.offset - b.offset)
    .map(({ offset, guards, ...rest }) => ({ ...rest, ...locate(offset), guarded: guards.some((guard) => guard.guards) }));

  function guardOf(tokens: readonly Token[]): Guard | null {
    const words = (): string[] => tokens.slice(0, colonAt(tokens)).filter(isName).map(text);
    switch (tokens[0]?.kind ?? "") {
      case "Try": {
        const guard = { guards: false };
        tries.set(blocks.length, guard);
        return guard;
      }
      case "Except": {
        const caught = words();
        const guard = tries.get(blocks.length);
        if (guard && (caught.length === 0 || caught.some((name) => guardingErrors.has(name)))) guard.guards = true;
        return null;
      }
      case "With":
        return words().includes("suppress") && words().some((name) => guardingErrors.has(name)) ? { guards: true } : null;
      case "If":
        return words().includes("TYPE_CHECKING") ? { guards: true } : null;
      default:
        return null;
    }
  }

  function collect(tokens: readonly Token[], guards: Guard[]): void {
    for (const [index, token] of tokens.entries()) {
      const previous = tokens[index - 1]?.kind;
      const starts = previous === undefined || previous === "Semi" || previous === "Colon";
      if (token.kind === "Import" && starts) collectImport(tokens, index, guards);
      if (token.kind === "From" && starts) collectFrom(tokens, index, guards);
      if (isName(token)) collectDynamic(tokens, index, guards);
    }
  }

  function collectImport(tokens: readonly Token[], at: number, guards: Guard[]): void {
    for (const part of split(statement(tokens, at + 1))) {
      const module = dotted(part);
      if (module !== "") found.push({ offset: part[0]?.start ?? 0, module, names: [], level: 0, guards });
    }
  }

  function collectFrom(tokens: readonly Token[], at: number, guards: Guard[]): void {
    const rest = statement(tokens, at + 1);
    const end = rest.findIndex(({ kind }) => kind === "Import");
    if (end < 0) return;
    const dots = rest.slice(0, end).findIndex(({ kind }) => kind !== "Dot" && kind !== "Ellipsis");
    const lead = rest.slice(0, dots < 0 ? end : dots);
    const level = lead.reduce((sum, { kind }) => sum + (kind === "Ellipsis" ? 3 : 1), 0);
    const names = split(rest.slice(end + 1).filter(({ kind }) => kind !== "Lpar" && kind !== "Rpar")).map(dotted);
    const module = dotted(rest.slice(lead.length, end));
    if (module === "importlib") for (const name of otherNames(rest.slice(end + 1))) importers.add(name);
    found.push({ offset: tokens[at]?.start ?? 0, module, names: names.filter((name) => name !== ""), level, guards });
  }

  /** What `import_module` is called from now on: `import_module as load`. */
  function otherNames(tokens: readonly Token[]): string[] {
    return split(tokens.filter(({ kind }) => kind !== "Lpar" && kind !== "Rpar"))
      .filter(([name, as]) => name !== undefined && text(name) === "import_module" && as?.kind === "As")
      .map((part) => text(part[2] ?? part[0]!));
  }

  /** `__import__("name")` and `import_module(name="name")`, with the name written out. */
  function collectDynamic(tokens: readonly Token[], at: number, guards: Guard[]): void {
    const [token, open, ...given] = tokens.slice(at, at + 6);
    const [name, equals] = given;
    const isNamed = name !== undefined && isName(name) && text(name) === "name" && equals?.kind === "Equal";
    const [argument, end] = isNamed ? given.slice(2) : given;
    if (token === undefined || open?.kind !== "Lpar" || argument?.kind !== "String") return;
    if (!importers.has(text(token)) || (end?.kind !== "Comma" && end?.kind !== "Rpar")) return;
    const module = /^[rRuU]?(?<quote>"""|'''|["'])(?<module>[\w.]+)\k<quote>$/.exec(text(argument))?.groups?.["module"];
    if (module !== undefined && !module.startsWith(".")) found.push({ offset: token.start, module, names: [], level: 0, guards });
  }

  /** `a.b as c` gives `a.b`. */
  function dotted(tokens: readonly Token[]): string {
    const end = tokens.findIndex(({ kind }) => kind === "As");
    return (end < 0 ? tokens : tokens.slice(0, end)).map(text).join("");
  }
}

interface LogicalLine {
  /** What opened or closed before it. */
  readonly indentation: string[];
  readonly tokens: Token[];
}

function logicalLines(tokenText: string): LogicalLine[] {
  const lines: LogicalLine[] = [];
  let line: LogicalLine = { indentation: [], tokens: [] };
  for (const [, kind = "", start, end] of tokenText.matchAll(/^ {4}(\w+) (\d+)\.\.(\d+)/gm)) {
    if (kind === "Comment" || kind === "NonLogicalNewline") continue;
    if (kind === "Indent" || kind === "Dedent") {
      line.indentation.push(kind);
    } else if (kind === "Newline") {
      lines.push(line);
      line = { indentation: [], tokens: [] };
    } else {
      line.tokens.push({ kind, start: Number(start), end: Number(end) });
    }
  }
  lines.push(line);
  return lines;
}

function isName({ kind }: Token): boolean {
  return kind === "Identifier" || kind === "Name";
}

/** The first colon outside of brackets, which ends a block's header. */
function colonAt(tokens: readonly Token[]): number {
  let depth = 0;
  for (const [index, { kind }] of tokens.entries()) {
    if (kind === "Lpar" || kind === "Lsqb" || kind === "Lbrace") depth += 1;
    if (kind === "Rpar" || kind === "Rsqb" || kind === "Rbrace") depth -= 1;
    if (kind === "Colon" && depth === 0) return index;
  }
  return tokens.length;
}

function statement(tokens: readonly Token[], from: number): Token[] {
  const end = tokens.findIndex(({ kind }, index) => index >= from && kind === "Semi");
  return tokens.slice(from, end < 0 ? tokens.length : end);
}

function split(tokens: readonly Token[]): Token[][] {
  const parts: Token[][] = [[]];
  for (const token of tokens) {
    if (token.kind === "Comma") parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

/** Line and column of rising offsets, counted from 1, in characters. */
function createLocator(source: Buffer): (offset: number) => { line: number; column: number } {
  let line = 1;
  let lineStart = 0;
  let at = 0;
  return (offset) => {
    for (; at < offset; at += 1) {
      const isBreak = source[at] === 0x0a || (source[at] === 0x0d && source[at + 1] !== 0x0a);
      if (!isBreak) continue;
      line += 1;
      lineStart = at + 1;
    }
    return { line, column: Array.from(source.toString("utf8", lineStart, offset)).length + 1 };
  };
}
