export interface Token {
  readonly text: string;
  readonly index: number;
}

/** The tokens of a script, without comments and texts: a string is `""`, and one with fields is like a call with them, `""(name,width,)`. Only newlines
 * outside of brackets count. Takes any text, in time that grows with its length. */
export function toTokens(script: string): Token[] {
  const tokens: Token[] = [];
  /** Open brackets; of a string with fields its quotes, in a field `{` and the quotes, in the format of a field `:` and the quotes. */
  const open: string[] = [];
  for (let at = 0; at < script.length;) {
    const inside = open.at(-1) ?? "";
    const quotes = /^:?(["']+)/.exec(inside)?.[1];
    const pattern = quotes === undefined ? inCode : inText;
    pattern.lastIndex = at;
    const match = pattern.exec(script);
    if (match === null) break;
    const { 0: text, 1: skipped, 2: string, 4: begun, index } = match;
    const add = (token: string): number => tokens.push({ text: token, index });
    at = index + text.length;
    if (quotes !== undefined) {
      if (text.startsWith(quotes) || (text === "\n" && quotes.length === 1)) {
        at = text === "\n" ? index : index + quotes.length;
        open.pop();
        add(")");
      } else if (text === "{" || (text === "{{" && inside !== quotes)) {
        at = index + 1;
        open.push(`{${quotes}`);
      } else if (text === "}" && inside !== quotes) open.length -= 2;
    } else if (begun !== undefined) {
      open.push(begun.replace(/^\w+/, ""));
      add('""');
      add("(");
    } else if (inside.length > 1 && /^[:}]$/.test(text)) {
      add(",");
      if (text === ":") open.push(`:${inside.slice(1)}`);
      else open.pop();
    } else if (skipped === undefined && (text !== "\n" || open.length === 0)) {
      if (/^[([{]$/.test(text)) open.push(text);
      else if (/^[)\]}]$/.test(text)) open.pop();
      add(string === undefined ? text : '""');
    }
  }
  return tokens;
}

/** Groups: what is skipped, a string without fields, the beginning of one with fields. An unterminated string ends with its line, or with the script. */
const inCode =
  /((?:[^\S\n]|\\\r?\n|#.*)+)|([bru]{0,2}(?:("""|''')(?:\\[^]|(?!\3)[^\\])*(?:\3|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?))|((?:[ft]r?|r[ft])(?:"""|'''|["']))|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d+)?|[\w\x80-\uffff]+|->|(?:\*\*|\/\/|<<|>>|[-+*/%@&|^=!<>])=?|[^]/iy;
const inText = /\\[^{}]|"""|'''|["'\n]|\{\{|[{}]/g;
