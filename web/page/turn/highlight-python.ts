type TokenKind = "plain" | "comment" | "string" | "number" | "keyword" | "builtin" | "name";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const keywords = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match case nonlocal not or pass raise return try while with yield".split(
    " ",
  ),
);
const builtins = new Set(
  "abs all any bool dict enumerate filter float format int isinstance len list map max min next open print range repr reversed round set sorted str sum tuple type zip pd np plt sm inputs set_result save_figure render_chart to_frame safe_merge_timeseries align_timeseries derive_change_series".split(
    " ",
  ),
);

const pattern =
  /(?<comment>#[^\n]*)|(?<string>\b[rRbBfFuU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?)|"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?)|(?<number>\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?)j?)|(?<word>[\p{L}_][\p{L}\p{N}_]*)/gu;

/** Splits Python code into highlighted tokens. Joined, they are the code again. */
export function highlightPython(code: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    if (match.index > at) tokens.push({ kind: "plain", text: code.slice(at, match.index) });
    tokens.push({ kind: kindOf(match, code), text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < code.length) tokens.push({ kind: "plain", text: code.slice(at) });
  return tokens;
}

function kindOf({ groups = {}, index, 0: text }: RegExpExecArray, code: string): TokenKind {
  if (groups["comment"] !== undefined) return "comment";
  if (groups["string"] !== undefined) return "string";
  if (groups["number"] !== undefined) return "number";
  if (keywords.has(text)) return "keyword";
  const isAttribute = code[index - 1] === ".";
  if (builtins.has(text) && !isAttribute) return "builtin";
  return code[index + text.length] === "(" ? "name" : "plain";
}

/** Groups the tokens by line. */
export function toLines(tokens: readonly Token[]): Token[][] {
  const lines: Token[][] = [[]];
  for (const { kind, text } of tokens) {
    for (const [index, piece] of text.split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (piece !== "") lines.at(-1)?.push({ kind, text: piece });
    }
  }
  return lines;
}
