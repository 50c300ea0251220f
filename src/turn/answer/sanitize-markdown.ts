import type { Nodes, Root } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { ellipsize } from "../../text/clip-text.ts";

/** Sanitizes Markdown while it streams. Released text is final; all of it together has the meaning of its parts. */
export interface MarkdownSanitizer {
  push(text: string): string;
  /** Returns the rest. A code block that is still open is closed. */
  end(): string;
}

/** Sanitizes a complete text. */
export function sanitizeMarkdown(text: string, ownUrls: ReadonlySet<string>): string {
  const sanitizer = createMarkdownSanitizer(ownUrls);
  return sanitizer.push(text) + sanitizer.end();
}

/** A longer block is escaped, because the time to parse a crafted one grows with the square of its size. */
const MAX_BLOCK_CHARACTERS = 16_384;
/** When an answer has used up this budget, its further blocks are escaped. It bounds the time for one answer. */
const PARSE_BUDGET_CHARACTERS = 524_288;
/** What it costs to parse an empty text, in characters. */
const PARSE_OVERHEAD = 1000;
/** Shorter blocks that need parsing are parsed together. */
const MIN_PARSED_CHARACTERS = 200;
/** Without one of these, a block has no link, image, HTML or code block. */
const needsParsing = /[[<]|:\/\/|www\.|```|~~~/i;
/** A longer line is processed in pieces. */
const LINE_PIECE_CHARACTERS = 4096;

/**
 * Makes Markdown of a model, a tool or a sandbox safe to render. Decides on the syntax tree of each top-level block:
 * - A link shows its address after its text. Only web and mail addresses stay clickable. Links to own files stay as they are.
 * - An image stays if its address is in `ownUrls`. Of others only the alt text stays, because loading one would send data to a foreign server.
 * - HTML is shown as text, except simple tags such as `<br>`. Link definitions are shown as text, so that no later block can turn an earlier one into a link.
 * - A block that is too large or too deeply nested is escaped as a whole: it shows as plain text.
 */
export function createMarkdownSanitizer(ownUrls: ReadonlySet<string>): MarkdownSanitizer {
  /** `block` collects lines, from the top level of the document; `code` releases a fenced code block; `plain` releases a block that is escaped. */
  let mode: "block" | "code" | "plain" = "block";
  let block = "";
  let fence = "";
  let isAfterBlankLine = false;
  /** A failed attempt to end the block is repeated when the block is twice as long. */
  let nextAttemptAt = 0;
  let budget = PARSE_BUDGET_CHARACTERS;
  let line = "";
  /** Whether a piece of the current line was already processed. */
  let isInsideLine = false;
  let endsWithCarriageReturn = false;

  /** Adds a line, or a piece of a long one, and returns what can be released. */
  function addLine(text: string, isWhole: boolean): string {
    const isContinuation = isInsideLine;
    isInsideLine = !isWhole;
    if (mode === "code") {
      if (isWhole && !isContinuation && isFenceEnd(text, fence)) mode = "block";
      return text;
    }
    const opened = isWhole && !isContinuation ? openingFence.exec(text)?.[1] : undefined;
    const released = isContinuation ? "" : endBlockBefore(text, opened !== undefined);
    const isBlank = /^[ \t]*\n?$/.test(text);
    isAfterBlankLine = isBlank && (!isContinuation || isAfterBlankLine);
    if (mode === "plain") return released + escapeMarkdown(text);
    if (block === "" && isBlank) return released + text;
    if (block === "" && opened !== undefined) {
      [mode, fence] = ["code", opened];
      return released + text;
    }
    block += text;
    if (block.length <= MAX_BLOCK_CHARACTERS) return released;
    mode = "plain";
    return released + escapeMarkdown(block);
  }

  /** Releases the block if `text` begins something new at the top level: a line that is not indented, after a blank line or with a code block. */
  function endBlockBefore(text: string, isFence: boolean): string {
    if (!/^\S/.test(text) || !(isAfterBlankLine || (isFence && mode === "block"))) return "";
    const isDone = block === "" || mode === "plain";
    if (!isDone && block.length < nextAttemptAt) return "";
    if (!isDone && !isFence && block.length < MIN_PARSED_CHARACTERS && needsParsing.test(block)) return "";
    const released = isDone ? "" : sanitize(block);
    if (released === null) {
      nextAttemptAt = block.length * 2;
      return "";
    }
    [mode, block, nextAttemptAt] = ["block", "", 0];
    return isDone || isAfterBlankLine ? released : `${released}\n`; // the blank line ends a list or an HTML block also in the whole text
  }

  /** Null while the block is open: for example inside a code block of a list. */
  function sanitize(text: string): string | null {
    if (!needsParsing.test(text)) return text;
    if (budget <= 0) return escapeMarkdown(text);
    const { safe, cost } = sanitizeBlock(text, ownUrls);
    budget -= cost;
    return safe;
  }

  return {
    push(text) {
      if (text === "") return "";
      const clean = replaceControls(endsWithCarriageReturn ? `\r${text}` : text);
      endsWithCarriageReturn = text.endsWith("\r");
      const pieces = (endsWithCarriageReturn ? clean.slice(0, -1) : clean).split("\n");
      const last = pieces.pop()!;
      let released = "";
      for (const piece of pieces) {
        released += addLine(`${line}${piece}\n`, true);
        line = "";
      }
      line += last;
      if (line.length <= LINE_PIECE_CHARACTERS) return released;
      released += addLine(line, false);
      line = "";
      return released;
    },
    end() {
      const last = line + (endsWithCarriageReturn ? "\n" : "");
      const isLineOpen = isInsideLine || (last !== "" && !endsWithCarriageReturn);
      const released = last === "" ? "" : addLine(last, true);
      if (mode === "code") return `${released}${isLineOpen ? "\n" : ""}${fence}`;
      return mode === "plain" || block === "" ? released : released + (sanitize(block) ?? escapeMarkdown(block));
    },
  };
}

const openingFence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;

function isFenceEnd(line: string, fence: string): boolean {
  const found = /^ {0,3}(`{3,}|~{3,})[ \t]*\n?$/.exec(line)?.[1];
  return found !== undefined && found[0] === fence[0] && found.length >= fence.length;
}

/** Line endings become `\n`. Control characters, also those that reverse the direction of text, become U+FFFD. */
function replaceControls(text: string): string {
  return text.replaceAll(/\r\n?/g, "\n").replaceAll(/[\0-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\uFEFF]/g, "\uFFFD");
}

/** Escapes everything that could have a meaning in Markdown. */
function escapeMarkdown(text: string): string {
  return text.replaceAll(/[!-/:-@[-`{-~]/g, String.raw`\$&`);
}

/** Changes can reveal another link or image, as in `[[a](b)](c)`. Text that needs more rounds is crafted. */
const MAX_ROUNDS = 4;

/** Returns the safe form of blocks of the top level, null if they are still open at the end of the text; and what it cost, in characters. */
function sanitizeBlock(text: string, ownUrls: ReadonlySet<string>): { readonly safe: string | null; readonly cost: number } {
  let safe = text;
  let cost = 0;
  for (let round = 0; round < MAX_ROUNDS && !isTooComplex(safe); round += 1) {
    cost += safe.length + PARSE_OVERHEAD;
    const tree = fromMarkdown(`${safe}\n\n${END}`, parseOptions);
    const edits = findEdits(tree, safe, ownUrls);
    if (edits.length === 0) return { safe: isEnd(tree.children.at(-1)) ? safe : null, cost };
    safe = applyEdits(safe, edits);
  }
  return { safe: escapeMarkdown(text), cost };
}

/** A paragraph after the text. It is one exactly if nothing in the text is still open. */
const END = "end";

function isEnd(node: Root["children"][number] | undefined): boolean {
  const [only] = node?.type === "paragraph" ? node.children : [];
  return only?.type === "text" && only.value === END;
}

/** Without the transforms of GFM: they find further addresses in the text, which show where they lead, and are slow for crafted text. */
const parseOptions = { extensions: [gfm()], mdastExtensions: gfmFromMarkdown().map((extension) => ({ ...extension, transforms: [] })) };

/** The most of each kind that one block may have. Ordinary text has far fewer; with more, parsing becomes slow. */
const limits: readonly (readonly [found: RegExp, max: number])[] = [
  [/[[\]]/g, 500],
  [/[*_~]/g, 1200],
  [/[<&]/g, 600],
  [/`/g, 1200],
  [/^[ \t>]*(?:[-*+=]|\d{1,9}[.)])/gm, 400],
];
const MAX_NESTING = 24;

function isTooComplex(text: string): boolean {
  if (text.length > 2 * MAX_BLOCK_CHARACTERS) return true;
  return limits.some(([found, max]) => (text.match(found)?.length ?? 0) > max) || nestingOf(text) > MAX_NESTING;
}

const containers = /^[ \t]*(?:(?:>|[-*+](?=\s|$)|\d{1,9}[.)](?=\s|$))[ \t]*)+/gm;

/** The deepest nesting that the quotes and lists of one line can have. */
function nestingOf(text: string): number {
  let deepest = 0;
  for (const [prefix] of text.matchAll(containers)) {
    const indent = prefix.search(/[^ \t]/);
    deepest = Math.max(deepest, Math.ceil(indent / 2) + (prefix.slice(indent).match(/[>.)+*-]/g)?.length ?? 0));
  }
  return deepest;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { start, end, text: replacement } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(text.slice(done, start), replacement);
    done = end;
  }
  return pieces.join("") + text.slice(done);
}

/** The changes that make the text safe. None overlap. */
function findEdits(tree: Root, source: string, ownUrls: ReadonlySet<string>): Edit[] {
  const edits: Edit[] = [];
  const open: Nodes[] = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const own = editNode(node, source, ownUrls);
    edits.push(...own);
    const isReplaced = own.length === 1;
    if (!isReplaced && "children" in node) open.push(...node.children);
  }
  return edits;
}

/** No edit, one that replaces the whole node, or two around its children. */
function editNode(node: Nodes, source: string, ownUrls: ReadonlySet<string>): Edit[] {
  const [start, end] = [node.position!.start.offset!, node.position!.end.offset!];
  const replace = (text: string): Edit[] => [{ start, end, text }];
  if (node.type === "image") return ownUrls.has(node.url) ? [] : replace(escapeInline(node.alt ?? ""));
  if (node.type === "imageReference") return replace(escapeInline(node.alt ?? ""));
  if (node.type === "definition") return replace(`${toOneLine(node.label ?? node.identifier)}: ${formatAddress(node.url)}`);
  if (node.type === "html") return simpleTag.test(node.value) ? [] : replace(source.slice(start, end).replaceAll("<", "&lt;"));
  if (node.type !== "link") return [];

  const address = formatAddress(node.url);
  if (source[start] !== "[") return isPlainAddress(node.url) ? [] : replace(address); // the address itself, with or without <>
  const shown = textOf(node).trim();
  if (isOwnFile(node.url, ownUrls) && !/\/\/|www\./i.test(shown)) return [];
  const [first, last] = [node.children[0], node.children.at(-1)];
  if (first === undefined || last === undefined || shown === node.url) return replace(address);
  return [
    { start, end: first.position!.start.offset!, text: "" },
    { start: last.position!.end.offset!, end, text: address === "" ? "" : ` (${address})` },
  ];
}

/** The text of a node as its reader sees it. */
function textOf(node: Nodes): string {
  if ("children" in node) return node.children.map(textOf).join("");
  return "value" in node ? node.value : "alt" in node ? (node.alt ?? "") : "";
}

/** Tags without attributes that only format. */
const simpleTag = /^<\/?(?:br|sub|sup|b|i|em|strong|u|s|kbd|mark)\s*\/?>$/i;

/** An address that reads as it is: without a user name that looks like a host, letters that look like others, or characters that end it early. */
function isPlainAddress(address: string): boolean {
  return /^(?:https?:\/\/[a-z\d.-]+(?::\d{1,5})?(?:[/?#][^\s<>|\\\p{C}]*)?|mailto:[!-;=?-[\]-{}~]+)$/iu.test(address);
}

const SHOWN_CHARACTERS = 200;

/** Web and mail addresses as `<…>`, which renders as a link; others as code. A host in other letters is shown in ASCII, and user names are removed. */
function formatAddress(address: string): string {
  if (isPlainAddress(address)) return `<${address}>`;
  const url = /^https?:/i.test(address) ? URL.parse(address) : null;
  if (url === null) return formatCode(ellipsize(address, SHOWN_CHARACTERS));
  [url.username, url.password] = ["", ""];
  const shown = url.href.replaceAll("|", "%7C");
  return isPlainAddress(shown) ? `<${shown}>` : formatCode(shown);
}

function formatCode(text: string): string {
  const shown = toOneLine(text.replaceAll(/[`|\p{C}]/gu, " "));
  return shown === "" ? "" : `\`${shown}\``;
}

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function escapeInline(text: string): string {
  return toOneLine(text).replaceAll(/[\\`*_[\]<>&|~!#]/g, String.raw`\$&`);
}

/** Files of this server, and places in the answer itself. */
function isOwnFile(address: string, ownUrls: ReadonlySet<string>): boolean {
  return ownUrls.has(address) || address.startsWith("#") || /^\/(?:artifacts|data)\/[\w-]+(?:\.\w+)*$/.test(address);
}
