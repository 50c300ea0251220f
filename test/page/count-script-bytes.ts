import type { Page, Response } from "playwright-core";

/** From now on, what the scripts of a page take on the wire, compressed as the server sends them; a page of a fresh context has none of them yet. */
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
