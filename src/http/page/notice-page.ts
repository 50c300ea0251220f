/** Small pages without a script, for when there is no page to show: nobody is logged in, a link was used, or the page was not built. */
const notices = {
  login: {
    status: 401,
    title: "Log in to Sluice",
    lines: [
      "This browser is not logged in.",
      "Open the one-time link that <code>sluice serve</code> printed when it started.",
      "A program with the bearer token can make another: <code>POST /api/login-links</code>.",
    ],
  },
  linkUsed: {
    status: 403,
    title: "This link does not work any more",
    lines: [
      "A link works once, within a day.",
      'If this browser is logged in already, go to <a href="/">the page</a>.',
      "Otherwise start <code>sluice serve</code> again, or make another with the bearer token: <code>POST /api/login-links</code>.",
    ],
  },
} as const;

export function noticePage(name: keyof typeof notices): Response {
  const { status, title, lines } = notices[name];
  return htmlPage({ status, title, body: lines.map((line) => `<p>${line}</p>`).join("\n") });
}

/** `body` is HTML of our own; what is not goes through `escapeHtml`. */
export function htmlPage({ status = 200, title, body }: { status?: number; title: string; body: string }): Response {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 42rem; margin: 10vh auto; padding: 0 1.25rem }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em }
pre { padding: 0.75rem 1rem; border: 1px solid; border-radius: 0.5rem; overflow-x: auto }
</style>
<h1>${escapeHtml(title)}</h1>
${body}
</html>
`;
  return new Response(html, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  });
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
