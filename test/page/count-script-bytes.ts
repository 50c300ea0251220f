import type { Page, Response } from "playwright-core";

/** Counts the compressed bytes of the scripts that a page loads from now on. Needs a fresh context without cached scripts. */
export function countScriptBytes(page: Page): () => Promise<number> {
  const scripts: Response[] = [];
  page.on("response", (response) => {
    if (response.request().resourceType() === "script") scripts.push(response);
  });
  return async () => {
    const sizes = await Promise.all(scripts.map((response) => response.request().sizes()));
    return sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
  };
}
