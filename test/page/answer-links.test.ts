import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, test } from "vitest";
import { sanitizeMarkdown } from "../../src/turn/answer/sanitize-markdown.ts";
import { linkForms, pictureForms, unsafeForms } from "../fixtures/link-forms.ts";
import { Answer } from "../../web/page/answer/answer.tsx";

const own = new Set(["/artifacts/ab.png"]);
const render = (text: string): string => renderToStaticMarkup(createElement(Answer, { text, artifacts: [], onOpen: () => {} }));

/** What a reader sees of rendered Markdown. */
function toVisibleText(html: string): string {
  return html
    .replaceAll(/<[^<>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&");
}

/** Links of rendered Markdown that do not show their address, as text or directly behind it. */
function findHiddenLinks(html: string): string[] {
  return html
    .split("<a ")
    .slice(1)
    .flatMap((part) => {
      const address = /href="([^"]*)"/.exec(part)?.[1] ?? "";
      const [text = ""] = part
        .slice(part.indexOf(">") + 1)
        .split("</bdi></a>")
        .slice(0, 2)
        .join(" ")
        .split("<a ", 1);
      const shown = toVisibleText(text);
      const plain = toVisibleText(address).replace(/\/$/, "").replace("mailto:", "");
      return /^(?:https?:\/\/[\w.:-]+\/|mailto:)/.test(address) && shown.includes(plain) ? [] : [part];
    });
}

const activeElement =
  /<(?:img|image|svg|script|iframe|object|embed|form|button|style|link|source|picture|video|audio)\b|<[^<>]* (?:style|src|srcset|on\w+)=/i;

describe.each([
  ["the server sends", (text: string) => sanitizeMarkdown(text, own)],
  ["an older version has stored", (text: string) => text],
])("of an answer that %s, the page", (_, prepare) => {
  test.each(Object.entries(linkForms))("shows where each link leads: %s", (_name, text) => {
    expect(findHiddenLinks(render(prepare(text)))).toEqual([]);
  });

  test.each([...Object.entries(pictureForms), ...Object.entries(linkForms)])("loads nothing: %s", (_name, text) => {
    expect(render(prepare(text))).not.toMatch(activeElement);
  });

  test.each(unsafeForms)("makes no link of %j", (text) => {
    const html = render(prepare(text));
    expect(html).not.toMatch(activeElement);
    expect(html.match(/href="(?!https?:\/\/|mailto:)/)).toBeNull();
  });
});

test.each(Object.entries(linkForms))("the text of an answer shows the address: %s", (_name, text) => {
  const safe = sanitizeMarkdown(text, own);
  expect(safe.toLowerCase()).toContain("https://evil.example/path");
  expect(toVisibleText(render(safe)).toLowerCase()).toContain("https://evil.example/path");
});

test("a link shows its address once if the address is its text", () => {
  for (const text of ["https://a.example/b", "<https://a.example>", "www.a.example/b", "mail@a.example"])
    expect(toVisibleText(render(text))).toBe(text.replaceAll(/[<>]/g, ""));
  expect(toVisibleText(render("https://bank.example@evil.example/b"))).toBe("https://bank.example@evil.example/b (https://evil.example/b)");
});
