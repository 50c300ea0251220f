import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";

/** What axe calls serious or critical on a page as it is now. */
export async function findBarriers(page: Page): Promise<unknown[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => html.slice(0, 200)) }));
}
