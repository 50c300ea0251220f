import { setImmediate as nextTurn } from "node:timers/promises";

/** What is looked at in one turn of the event loop: a millisecond or two. */
const TURN_CHARACTERS = 256 * 1024;

/** Whether a text is JSON by the book, as `JSON.parse` judges it. A long text is looked at in turns, so that it holds up nobody, and nothing is made of it. */
export async function isJson(text: string): Promise<boolean> {
  if (text.length <= TURN_CHARACTERS) return canParse(text);
  const check = createJsonCheck(text);
  for (let until = TURN_CHARACTERS; ; until += TURN_CHARACTERS) {
    const verdict = check(until);
    if (verdict !== null) return verdict;
    await nextTurn();
  }
}

function canParse(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What may come next. */
type Expected = "value" | "value or ]" | "key" | "key or }" | ":" | ", or end" | "rest of string";

/** Looks on up to a character at least as far as told. Null: so far it is JSON. */
export function createJsonCheck(text: string): (until: number) => boolean | null {
  const open: number[] = [];
  let expected: Expected = "value";
  let isKey = false;
  let at = 0;

  return (until) => {
    while (at < text.length) {
      if (at >= until) return null;
      if (expected !== "rest of string" && isSpace(text.charCodeAt(at))) at += 1;
      else if (!step(text.charCodeAt(at), until)) return false;
    }
    return expected === ", or end" && open.length === 0;
  };

  function step(code: number, until: number): boolean {
    switch (expected) {
      case "rest of string":
        return readString(until);
      case "value or ]":
        if (code === CLOSE_LIST) return close(OPEN_LIST);
        return value(code);
      case "value":
        return value(code);
      case "key or }":
        if (code === CLOSE_OBJECT) return close(OPEN_OBJECT);
        return key(code);
      case "key":
        return key(code);
      case ":":
        return code === COLON && go("value", 1);
      case ", or end":
        if (code === COMMA) return open.length > 0 && go(open.at(-1) === OPEN_LIST ? "value" : "key", 1);
        return close(code === CLOSE_LIST ? OPEN_LIST : code === CLOSE_OBJECT ? OPEN_OBJECT : -1);
    }
  }

  function go(next: Expected, characters: number): true {
    expected = next;
    at += characters;
    return true;
  }

  function close(opened: number): boolean {
    return open.pop() === opened && go(", or end", 1);
  }

  function key(code: number): boolean {
    isKey = true;
    return code === QUOTE && go("rest of string", 1);
  }

  function value(code: number): boolean {
    if (code === OPEN_OBJECT || code === OPEN_LIST) {
      open.push(code);
      return go(code === OPEN_LIST ? "value or ]" : "key or }", 1);
    }
    isKey = false;
    if (code === QUOTE) return go("rest of string", 1);
    plain.lastIndex = at;
    const found = plain.exec(text);
    return found !== null && go(", or end", found[0].length);
  }

  function readString(until: number): boolean {
    for (; at < text.length && at < until; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return go(isKey ? ":" : ", or end", 1);
      if (code < 0x20) return false;
      if (code !== BACKSLASH) continue;
      escape.lastIndex = at;
      const found = escape.exec(text);
      if (found === null) return false;
      at += found[0].length - 1;
    }
    return true;
  }
}

const plain = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const [QUOTE, BACKSLASH, COLON, COMMA, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [34, 92, 58, 44, 91, 93, 123, 125] as const;

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
