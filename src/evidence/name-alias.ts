import { isReservedPythonName } from "../protocol/python-names.ts";

const MAX_STEM_CHARACTERS = 48;

/** `get_price` → `get_price_1`, then `get_price_2`. The server of a `server__tool` name is left out: the item says the tool's full name. */
export function nameToolAlias(tool: string, isTaken: (alias: string) => boolean): string {
  return numbered(toToolStem(tool), 1, isTaken);
}

/** `nameToolAlias` for a conversation, in which no alias is ever given back: it remembers where it was. */
export function createToolAliases(isTaken: (alias: string) => boolean): (tool: string) => string {
  const stems = new Map<string, string>();
  const last = new Map<string, number>();
  return (tool) => {
    const stem = stems.get(tool) ?? toToolStem(tool);
    stems.set(tool, stem);
    const given = last.get(stem) ?? 0;
    const next = isTaken(`${stem}_${given}`) ? given + 1 : Math.max(given, 1); // what was given may not have been used
    const alias = isFree(`${stem}_${next}`, isTaken) ? `${stem}_${next}` : nameToolAlias(tool, isTaken);
    last.set(stem, Number(alias.slice(stem.length + 1)));
    return alias;
  };
}

function toToolStem(tool: string): string {
  return toStem(withoutServer(tool), "output");
}

/** A name that somebody chose: itself where Python and the conversation allow it, else the nearest that they do. */
export function nameGivenAlias(name: string, isTaken: (alias: string) => boolean): string {
  const stem = toStem(name, "data");
  if (isFree(stem, isTaken)) return stem;
  const spare = isReservedPythonName(stem) ? `${stem}_data` : stem;
  if (isFree(spare, isTaken)) return spare;
  return numbered(spare, 2, isTaken);
}

/** A further part of an output: `get_price_1_image`, then `get_price_1_image_2`. */
export function namePartAlias({ of, part, isTaken }: { of: string; part: string; isTaken: (alias: string) => boolean }): string {
  if (isFree(`${of}_${part}`, isTaken)) return `${of}_${part}`;
  return numbered(`${of}_${part}`, 2, isTaken);
}

/**
 * The number after one that is taken. It is not counted up to, because a script may call one tool a thousand times: steps that double find a free
 * number, halves the one between.
 */
function numbered(stem: string, first: number, isTaken: (alias: string) => boolean): string {
  const isFreeAt = (number: number): boolean => isFree(`${stem}_${number}`, isTaken);
  let taken = first - 1;
  let free = first;
  for (let step = 1; !isFreeAt(free); step *= 2) {
    taken = free;
    free += step;
  }
  while (free - taken > 1) {
    const middle = Math.floor((taken + free) / 2);
    if (isFreeAt(middle)) free = middle;
    else taken = middle;
  }
  return `${stem}_${free}`;
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
