import { readFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "playwright-core";

const file = path.join(import.meta.dirname, "..", "..", "dist", "web", "chart-app.html");

/** Resolves when the app has drawn its charts. */
export async function showInHost(page: Page, structuredContent: unknown, theme: "light" | "dark" = "light"): Promise<void> {
  await openInHost(page, structuredContent, theme);
  await page.frameLocator("iframe").locator(".chart, [role=alert]").first().waitFor();
}

/** A minimal host of MCP Apps: a frame without origin and network, the handshake, then one tool result. */
export async function openInHost(page: Page, structuredContent: unknown, theme: "light" | "dark" = "light"): Promise<void> {
  await page.setContent(
    `<!doctype html><style>body{margin:0;background:${theme === "dark" ? "#1a1d20" : "#fff"}}iframe{border:0;width:100%;height:100vh}</style>`,
  );
  await page.evaluate(
    ({ html, structuredContent, theme }) => {
      const frame = document.createElement("iframe");
      frame.setAttribute("sandbox", "allow-scripts");
      frame.title = "Chart";
      const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">`;
      frame.srcdoc = html.replace("<head>", `<head>${policy}`);
      const answer = (message: Record<string, unknown>): void => frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
      const heard: string[] = [];
      Object.assign(globalThis, { heard });
      addEventListener("message", ({ data }: MessageEvent<{ id?: number; method?: string; params?: { protocolVersion?: string } }>) => {
        heard.push(data.method ?? "");
        if (data.method === "ui/initialize") {
          const result = {
            protocolVersion: data.params?.protocolVersion,
            hostInfo: { name: "test-host", version: "1.0.0" },
            hostCapabilities: {},
            hostContext: { theme },
          };
          answer({ id: data.id, result });
        }
        if (data.method === "ui/notifications/initialized")
          answer({ method: "ui/notifications/tool-result", params: { content: [], structuredContent } });
      });
      document.body.append(frame);
    },
    { html: readFileSync(file, "utf8"), structuredContent, theme },
  );
}
