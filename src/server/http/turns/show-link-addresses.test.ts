import { expect, test } from "vitest";
import { showLinkAddresses } from "./turns.ts";

test.each([
  ["[the bank](https://evil.example)", "the bank (<https://evil.example>)"],
  ['[the bank](<https://evil.example> "Your bank")', "the bank (<https://evil.example>)"],
  ["[https://a.example](https://a.example)", "<https://a.example>"],
  ["[x](javascript:alert(1))", "x (`javascript:alert(1)`)"],
  ["![figure](/artifacts/ab.png)", "![figure](/artifacts/ab.png)"],
  ["[data](/data/ds_1.json)", "[data](/data/ds_1.json)"],
  ["[data](//evil.example/data/)", "data (`//evil.example/data/`)"],
  ["[a](b) and [c](d)", "a (`b`) and c (`d`)"],
  ["text\n[ref]: https://evil.example 'title'\nmore", "text\nref: <https://evil.example>\nmore"],
  ["no link [here] at (all)", "no link [here] at (all)"],
])("shows where a link leads: %j", (text, shown) => {
  expect(showLinkAddresses(text)).toBe(shown);
});
