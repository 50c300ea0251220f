import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";

/** Lists what axe calls serious or critical, on the page or in one part of it. */
export async function findBarriers(page: Page, part?: string): Promise<unknown[]> {
  const axe = new AxeBuilder({ page });
  const { violations } = await (part === undefined ? axe : axe.include(part)).analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html.slice(0, 200)) }));
}
