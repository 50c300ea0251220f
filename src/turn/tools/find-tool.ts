import type { CatalogTool, ToolList } from "../../tools/create-tool-catalog.ts";
import type { Turn } from "../open-turn.ts";

/** Whose tool it is, also while its server is away: it was there in an earlier step, or the name says whose it is. */
export function findServer({ owners, away }: Pick<Turn, "owners" | "away">, name: string): string | undefined {
  return owners.get(name) ?? away.find(({ server }) => name.startsWith(`${server}__`))?.server;
}

/** A tool by any of its names; null when there is none now. */
export function findTool({ tools }: ToolList, name: string): CatalogTool | null {
  return tools.find(({ name: shown, fullName, bareName }) => [shown, fullName, bareName].includes(name)) ?? null;
}
