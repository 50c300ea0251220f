import { expect, test } from "vitest";
import { escapeControls } from "../text/json.ts";
import { toTerminal } from "./terminal.ts";

test("control sequences become visible, and other text is unchanged", () => {
  expect(toTerminal("\u001B[2Jgone\u001B]0;title\u0007 \u009B31m é 中\t1\r\n")).toBe("␛[2Jgone␛]0;title␇ \\x9b31m é 中\t1\r\n");
});

test("direction marks become visible", () => {
  expect(toTerminal("report\u202Egnp.exe \u2066hidden\u2069 שלום")).toBe("report\\u202egnp.exe \\u2066hidden\\u2069 שלום");
});

test("escaping does not change the value of JSON", () => {
  const value = { k: "\u001B \u009B31m é \u202Egnp" };
  const text = escapeControls(JSON.stringify(value));
  expect(text).toBe('{"k":"\\u001b \\u009b31m é \\u202egnp"}');
  expect(JSON.parse(text)).toEqual(value);
});
