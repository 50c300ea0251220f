import type { CatalogTool, ToolList } from "../../tools/create-tool-catalog.ts";

/** A tool by any of its names; null when there is none now. */
export function findTool({ tools }: ToolList, name: string): CatalogTool | null {
  return tools.find(({ name: shown, fullName, bareName }) => [shown, fullName, bareName].includes(name)) ?? null;
}
