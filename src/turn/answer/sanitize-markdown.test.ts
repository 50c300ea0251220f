import fc from "fast-check";
import type { Nodes } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { describe, expect, test } from "vitest";
import { createMarkdownSanitizer, sanitizeMarkdown } from "./sanitize-markdown.ts";

const own = new Set(["file:///a.png", "/artifacts/ab.png"]);
const sanitize = (text: string): string => sanitizeMarkdown(text, own);

/** Every node of a text as a reader of GFM sees it. */
function nodesOf(text: string): Nodes[] {
  const found: Nodes[] = [fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })];
  for (const node of found) if ("children" in node) found.push(...node.children);
  return found;
}

/** Why a text could mislead its reader or load something. */
function findHarm(text: string): string[] {
  return nodesOf(text).flatMap((node) => {
    if (node.type === "image") return own.has(node.url) ? [] : [`image ${node.url}`];
    if (node.type === "definition" || node.type === "imageReference" || node.type === "linkReference") return [node.type];
    if (node.type === "html") return /^<\/?\w+>$/.test(node.value) ? [] : [`html ${node.value}`];
    if (node.type !== "link" || own.has(node.url) || /^(?:#|\/(?:artifacts|data)\/[\w.-]+$)/.test(node.url)) return [];
    const shown = node.children.map((child) => (child.type === "text" ? child.value : `<${child.type}>`)).join("");
    const addresses = [shown, `http://${shown}`, `mailto:${shown}`];
    return addresses.includes(node.url) ? [] : [`${shown} leads to ${node.url}`];
  });
}

describe("sanitized Markdown", () => {
  test.each([
    ["[the bank](https://evil.example)", "the bank (<https://evil.example>)"],
    ['[the bank](<https://evil.example> "Your bank")', "the bank (<https://evil.example>)"],
    ["[https://a.example](https://a.example)", "<https://a.example>"],
    ["[https://good.example](https://evil.example)", "https://good.example (<https://evil.example>)"],
    ["[x](javascript:alert(1))", "x (`javascript:alert(1)`)"],
    ["[x](data:text/html,hi)", "x (`data:text/html,hi`)"],
    ["![figure](/artifacts/ab.png)", "![figure](/artifacts/ab.png)"],
    ["[data](/data/ds_1.json)", "[data](/data/ds_1.json)"],
    ["[https://bank.example](/data/ds_1.json)", "https://bank.example (`/data/ds_1.json`)"],
    ["[https:\\/\\/bank.example](/data/ds_1.json)", "https:\\/\\/bank.example (`/data/ds_1.json`)"],
    ["[www&period;bank.example](/data/ds_1.json)", "www&period;bank.example (`/data/ds_1.json`)"],
    ["[data](/data/../login?code=x)", "data (`/data/../login?code=x`)"],
    ["[data](//evil.example/data/)", "data (`//evil.example/data/`)"],
    ["[a](b) and [c](d)", "a (`b`) and c (`d`)"],
    ["[below](#below)", "[below](#below)"],
    ["[nowhere]()", "nowhere"],
    ["text\n\n[ref]: https://evil.example 'title'\nmore", "text\n\nref: <https://evil.example>\nmore"],
    ["[x][ref] ![y][ref]\n\n> [ref]: https://evil.example", "[x][ref] y\n\n> ref: <https://evil.example>"],
    ["[x][ref] ![y][ref]\n[x]\n- [ref]: https://evil.example", "[x][ref] y\n[x]\n- ref: <https://evil.example>"],
    ["no link [here] at (all)", "no link [here] at (all)"],
    ["[a [b] c](<https://evil.example/a b>)", "a [b] c (<https://evil.example/a%20b>)"],
    ['[a]( https://evil.example "say \\"hi\\"" )', "a (<https://evil.example>)"],
    ["> quoted [a\n> b](\n> https://evil.example\n> 'c')", "> quoted a\n> b (<https://evil.example>)"],
    ["| a |\n| - |\n| [x](https://evil.example/a\\|b) |", "| a |\n| - |\n| x (<https://evil.example/a%7Cb>) |"],
    ["# [x](https://evil.example)", "# x (<https://evil.example>)"],
    ["[**x** `y`](https://evil.example)", "**x** `y` (<https://evil.example>)"],
    ["[x](https&colon;//evil.example&sol;a)", "x (<https://evil.example/a>)"],
    ["[![x](https://evil.example/i.png)](https://evil.example)", "x (<https://evil.example>)"],
    ["[![own](/artifacts/ab.png)](https://evil.example)", "![own](/artifacts/ab.png) (<https://evil.example>)"],
    ["[[x](https://a.example)](https://b.example)", "x (<https://a.example>) (<https://b.example>)"],
    ["![a\\]b](http://evil.example)", "a\\]b"],
    ["![x](<https://evil.example/a b> 'title')", "x"],
    ["![[click](https://evil.example)](https://evil.example)", "click"],
    ["![own](file:///a.png) ![own](file:///a.png?x)", "![own](file:///a.png) own"],
    ["a <img src='https://evil.example'> b<br>c", "a &lt;img src='`https://evil.example'>` b<br>c"],
    ["<a href='https://evil.example'>bank</a>", "&lt;a href='`https://evil.example'>bank&lt;/a>`"],
    ["<div>\n[x](https://evil.example)\n</div>", "&lt;div>\nx (<https://evil.example>)\n&lt;/div>"],
    ["<!-- a\n\nb --> c", "&lt;!-- a\n\nb --> c"],
    ["<javascript:alert(1)>", "`javascript:alert(1)`"],
    ["https://good.example@evil.example/x", "<https://evil.example/x>"],
    ["see <https://аррӏе.com/x>.", "see <https://xn--80ak6aa92e.com/x>."],
    ["[x](https://good.example\u202emoc.live/)", "x (`https://good.example\uFFFDmoc.live/`)"],
    ["[^1]\n\n[^1]: See [x](https://evil.example)", "[^1]\n\n[^1]: See x (<https://evil.example>)"],
    ["Mail <a@b.example> or www.c.example, https://d.example/?q=1!", "Mail <a@b.example> or www.c.example, https://d.example/?q=1!"],
    ["`[x](https://evil.example)`\n\n    [x](https://evil.example)", "`[x](https://evil.example)`\n\n    [x](https://evil.example)"],
    ["~~~\n[x](https://a.example)\n\n[y]: z\n~~~\n[x](y)", "~~~\n[x](https://a.example)\n\n[y]: z\n~~~\nx (`y`)"],
    ["a\n```\n<img>\n", "a\n\n```\n<img>\n```"],
    ["- a\n\n      [x](y)\n\n  [x](y)\n\nb", "- a\n\n      [x](y)\n\n  x (`y`)\n\nb"],
    ["a\r\n\r\nb\rc\u001b[2J", "a\n\nb\nc\uFFFD[2J"],
    [
      "5 < 6 and **bold**!\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
      "5 < 6 and **bold**!\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    ],
  ])("of %j", (text, expected) => {
    expect(sanitize(text)).toBe(expected);
    expect(findHarm(expected)).toEqual([]);
  });

  const piece = fc.constantFrom(
    ...[
      "[",
      "]",
      "(",
      ")",
      "![",
      "](",
      "<",
      ">",
      "\n",
      "\n\n",
      " ",
      "  ",
      "    ",
      "\t",
      "\r",
      "> ",
      "- ",
      "1. ",
      "```",
      "~~~",
      "`",
      "\\",
      "|",
      "\n|-|\n",
      "*",
      "_",
      "#",
    ],
    ...[
      "https://evil.example",
      "http://a@b.example",
      "www.c.example",
      "javascript:x",
      "/artifacts/ab.png",
      "file:///a.png",
      "[a]: ",
      "[^a]",
      ": ",
      '"',
      "'",
      "!",
      "&lt;",
      "&#91;",
    ],
    ...[
      "<a href='https://evil.example'>",
      "</a>",
      "<!--",
      "-->",
      "<div>",
      "<script>",
      "<img src=x>",
      "<br>",
      "text",
      "\u0000",
      "\u202e",
      "a@b.example",
      "\n---\n",
      "\n=\n",
    ],
  );
  const texts = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(""));

  test("has no harm, whatever the text", () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(findHarm(sanitize(text))).toEqual([]);
      }),
      { numRuns: 1_500 },
    );
  });

  test("is the same however the text is split, and nothing is retracted", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(200), { maxLength: 8 }), (text, cuts) => {
        const sanitizer = createMarkdownSanitizer(own);
        const at = [0, ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, index) => sanitizer.push(text.slice(at[index], end)));
        expect(pieces.join("") + sanitizer.end()).toBe(sanitize(text));
      }),
      { numRuns: 500 },
    );
  });

  test("is escaped when it is too long, too deep or has too many links, and plain text after it is not", () => {
    for (const block of [
      "[a](b) ".repeat(300),
      "> ".repeat(100),
      "- ".repeat(100),
      "[[[[[[a](b)](c)](d)](e)](f)](g)",
      `${"word [a](b) ".repeat(40)}\n`.repeat(40),
    ]) {
      const safe = sanitize(`${block}\n\n**after**`);
      expect(safe.replaceAll("\\", "")).toBe(`${block.replaceAll("\\", "")}\n\n**after**`);
      expect(findHarm(safe)).toEqual([]);
    }
  });

  test("is safe to sanitize again", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const once = sanitize(text);
        expect(sanitize(once)).toBe(once);
      }),
      { numRuns: 300 },
    );
  });
});
