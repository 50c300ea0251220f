import { isReservedPythonName } from "../protocol/python-names.ts";

const MAX_STEM_CHARACTERS = 48;

/** `get_price` → `get_price_1`, then `get_price_2`. The server of a `server__tool` name is left out: the item says the tool's full name. */
export function nameToolAlias(tool: string, isTaken: (alias: string) => boolean): string {
  const stem = toStem(withoutServer(tool), "output");
  for (let number = 1; ; number++) if (isFree(`${stem}_${number}`, isTaken)) return `${stem}_${number}`;
}

/** A name that somebody chose: itself where Python and the conversation allow it, else the nearest that they do. */
export function nameGivenAlias(name: string, isTaken: (alias: string) => boolean): string {
  const stem = toStem(name, "data");
  if (isFree(stem, isTaken)) return stem;
  const spare = isReservedPythonName(stem) ? `${stem}_data` : stem;
  if (isFree(spare, isTaken)) return spare;
  for (let number = 2; ; number++) if (isFree(`${spare}_${number}`, isTaken)) return `${spare}_${number}`;
}

/** A further part of an output: `get_price_1_image`, then `get_price_1_image_2`. */
export function namePartAlias({ of, part, isTaken }: { of: string; part: string; isTaken: (alias: string) => boolean }): string {
  if (isFree(`${of}_${part}`, isTaken)) return `${of}_${part}`;
  for (let number = 2; ; number++) if (isFree(`${of}_${part}_${number}`, isTaken)) return `${of}_${part}_${number}`;
}

function withoutServer(tool: string): string {
  const at = tool.indexOf("__");
  return at > 0 && /[^_]/.test(tool.slice(at)) ? tool.slice(at + 2) : tool;
}

/** ASCII only: Python would also take other letters, but folds some of them, so that two names could be one. */
function toStem(name: string, fallback: string): string {
  const plain = name.normalize("NFKD").replaceAll(/\p{M}/gu, "");
  const words = plain.replaceAll(/[^A-Za-z0-9]+/g, "_").slice(0, MAX_STEM_CHARACTERS);
  const stem = words.replace(/^_+/, "").replace(/_+$/, "");
  if (stem === "") return fallback;
  return /^\d/.test(stem) ? `${fallback}_${stem}` : stem;
}

function isFree(alias: string, isTaken: (alias: string) => boolean): boolean {
  return !isReservedPythonName(alias) && !isTaken(alias);
}
