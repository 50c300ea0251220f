import { endOfString, tokenizePython, type PythonToken } from "./tokenize-python.ts";

/** What is read of all f-strings of a script together: more than somebody wrote, and no work that others would notice. */
const MAX_CHARACTERS = 32 * 1024;
const MAX_STRINGS = 1_000;

/**
 * The tokens of a script, followed by those of the fields of its f-strings, each in round brackets as a statement of its own. So a question about the
 * whole script sees them too, with the lines that they are on.
 */
export function withFields(tokens: readonly PythonToken[]): readonly PythonToken[] {
  const open = tokens.filter(isFormatted).slice(0, MAX_STRINGS);
  if (open.length === 0) return tokens;
  const all = [...tokens];
  let room = MAX_CHARACTERS;
  for (let token = open.shift(); token !== undefined; token = open.shift()) {
    if (token.text.length > room) continue;
    room -= token.text.length;
    for (const { code, line } of fieldsOf(token)) {
      const inside = tokenizePython(`(${code})`).map((inner) => ({ ...inner, line: line + inner.line - 1 }));
      for (const inner of inside) {
        all.push(inner);
        if (isFormatted(inner)) open.push(inner);
      }
    }
  }
  return all;
}

function isFormatted({ kind, text }: PythonToken): boolean {
  return kind === "string" && /^\w*[fFtT]\w*["']/.test(text) && text.includes("{");
}

interface Field {
  readonly code: string;
  readonly line: number;
}

/** Expressions of an f-string, those in format specifications too. */
function fieldsOf({ text, line }: PythonToken): Field[] {
  const fields: Field[] = [];
  let lines = line;
  /** Fields whose format specification is being read. */
  let specifications = 0;
  for (let at = /["']/.exec(text)!.index; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === "\n") lines += 1;
    else if (character === "\\") at += 1;
    else if (character === "}" && specifications > 0) specifications -= 1;
    else if (character === "{" && text[at + 1] === "{" && specifications === 0) at += 1;
    else if (character === "{") {
      const end = endOfExpression(text, at + 1);
      const code = text.slice(at + 1, end).replace(/(?<![=!<>:])=\s*$/, "");
      fields.push({ code, line: lines });
      lines += text.slice(at + 1, end).split("\n").length - 1;
      if (text[end] !== "}") specifications += 1;
      at = end;
    }
  }
  return fields;
}

/** Where the expression ends: before its conversion, its format, or its closing bracket. */
function endOfExpression(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '"' || character === "'") {
      const quote = text.startsWith(character.repeat(3), at) ? character.repeat(3) : character;
      at = endOfString(text, at, quote) - 1;
    } else if ("([{".includes(character)) depth += 1;
    else if (depth > 0) depth -= ")]}".includes(character) ? 1 : 0;
    else if (character === "}" || character === ":" || (character === "!" && text[at + 1] !== "=")) return at;
  }
  return text.length;
}
