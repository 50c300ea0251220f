import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Stands in front of every script and gives it `call_tool`. */
export const montyPrelude: string = readFileSync(join(import.meta.dirname, "..", "..", "..", "python", "monty_prelude.py"), "utf8");

export const montyPreludeLines: number = montyPrelude.split("\n").length - 1;
