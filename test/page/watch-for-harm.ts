import type { Page } from "playwright-core";

/** Watches for what injected markup would do if it ran: contact another host, open a dialog, run a script. */
export function watchForHarm(page: Page, origin: string): () => Promise<unknown> {
  const [foreign, dialogs]: [string[], string[]] = [[], []];
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith("blob:")) foreign.push(request.url());
  });
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.on("popup", (popup) => foreign.push(popup.url()));
  return async () => ({
    foreign,
    dialogs,
    ...(await page.evaluate(() => {
      const all = [...document.querySelectorAll("*")];
      const addresses = all.flatMap((element) =>
        ["href", "src", "xlink:href", "action", "formaction"].flatMap((name) => element.getAttribute(name) ?? []),
      );
      return {
        owned: (globalThis as unknown as { owned?: number }).owned ?? null,
        handlers: all.flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith("on"))),
        scripts: addresses.filter((address) => /^\s*(?:javascript|data|vbscript):/i.test(address)),
        made: all.flatMap(({ tagName }) => (["IFRAME", "OBJECT", "EMBED"].includes(tagName) ? [tagName] : [])),
        pictures: [...document.images]
          .map((image) => new URL(image.src).pathname)
          .filter((path) => !/^\/artifacts\/[0-9a-f]{64}\.png$/.test(path)),
      };
    })),
  });
}

export const noHarm = { foreign: [], dialogs: [], owned: null, handlers: [], scripts: [], made: [], pictures: [] };
