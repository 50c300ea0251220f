import { isReservedPythonName } from "../protocol/python-names.ts";

type IsTaken = (alias: string) => boolean;

/**
 * Returns a function that names tool outputs: `get_price` becomes `get_price_1`, then `get_price_2`. Omits the server of a `server__tool` name, because
 * the item has the full name. A number is used again if nothing was kept under it.
 */
export function createToolAliases(isTaken: IsTaken): (tool: string) => string {
  const lastNumbers = new Map<string, number>();
  return (tool) => {
    const stem = toStem(withoutServer(tool), "output");
    const number = firstFree(stem, lastNumbers.get(stem) ?? 1, isTaken);
    lastNumbers.set(stem, number);
    return `${stem}_${number}`;
  };
}

/** The alias for a name that a user chose: the name itself if it is a free Python name, else a similar one. */
export function nameGivenAlias(name: string, isTaken: IsTaken): string {
  const stem = toStem(name, "data");
  if (isFree(stem, isTaken)) return stem;
  const spare = isReservedPythonName(stem) ? `${stem}_data` : stem;
  if (isFree(spare, isTaken)) return spare;
  return `${spare}_${firstFree(spare, 2, isTaken)}`;
}

/** The alias for a further part of an output: `get_price_1_image`, then `get_price_1_image_2`. */
export function namePartAlias({ alias, part, isTaken }: { alias: string; part: string; isTaken: IsTaken }): string {
  const stem = `${alias}_${part}`;
  return isFree(stem, isTaken) ? stem : `${stem}_${firstFree(stem, 2, isTaken)}`;
}

function firstFree(stem: string, from: number, isTaken: IsTaken): number {
  let number = from;
  while (!isFree(`${stem}_${number}`, isTaken)) number += 1;
  return number;
}

function isFree(alias: string, isTaken: IsTaken): boolean {
  return !isReservedPythonName(alias) && !isTaken(alias);
}

function withoutServer(tool: string): string {
  const at = tool.indexOf("__");
  return at > 0 && /[^_]/.test(tool.slice(at)) ? tool.slice(at + 2) : tool;
}

const MAX_STEM_CHARACTERS = 48;

/** ASCII only: Python allows other letters too, but normalizes some of them, so that two names could become one. */
function toStem(name: string, fallback: string): string {
  const ascii = name.normalize("NFKD").replaceAll(/\p{M}/gu, "");
  const words = ascii.replaceAll(/[^A-Za-z0-9]+/g, "_").slice(0, MAX_STEM_CHARACTERS);
  const stem = words.replace(/^_/, "").replace(/_$/, "");
  if (stem === "") return fallback;
  return /^\d/.test(stem) ? `${fallback}_${stem}` : stem;
}
