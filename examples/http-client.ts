/**
 * A client of `sluice serve`: it asks a question, follows the turn while it runs, and downloads the figure and the data. Run it:
 * `node examples/http-client.ts`. It starts its own server with the bundled sample and a model that needs no API key.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { turnDocumentSchema, turnEventSchema, type TurnDocument } from "../src/entries/protocol.ts";

const directory = await mkdtemp(path.join(tmpdir(), "sluice-example-"));
const server = spawn(path.join(import.meta.dirname, "../bin/sluice"), ["serve", "--port", "0", "--log-level", "warn"], {
  cwd: directory,
  env: { ...process.env, SLUICE_DATA: directory },
  stdio: ["ignore", "pipe", "inherit"],
});

try {
  const [url, token] = await readGreeting();
  const headers = { authorization: `Bearer ${token}` };

  const response = await fetch(`${url}/api/turns`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ question: "How did the total reserves of all venues change over two years, and how much of it was flow?" }),
  });
  const { turnId } = turnDocumentSchema.parse(await response.json());

  for await (const line of readLines(await fetch(`${url}/api/turns/${turnId}/events`, { headers })))
    if (line.startsWith("data: ")) {
      const { at: _, ...event } = JSON.parse(line.slice("data: ".length));
      const turnEvent = turnEventSchema.parse(event);
      if (turnEvent.type === "tool-end") console.log(turnEvent.tool, turnEvent.status);
    }

  const turn: TurnDocument = turnDocumentSchema.parse(await (await fetch(`${url}/api/turns/${turnId}`, { headers })).json());
  console.log(turn.result?.answer.split("\n")[0]);
  for (const { kind, url: address } of turn.result?.artifacts ?? []) {
    const response = await fetch(address, { headers });
    console.log(kind, response.status, response.headers.get("content-type"));
  }
  const table = await fetch(`${turn.result?.dataset?.publicDataUrl.replace(/\.json$/, "")}/tables/get_prices_1.csv`, { headers });
  console.log((await table.text()).split("\n")[0]);
} finally {
  server.kill("SIGTERM");
  await once(server, "close");
  await rm(directory, { recursive: true, force: true });
}

/** Reads the address and the token that the server prints when it is ready. */
async function readGreeting(): Promise<[url: string, token: string]> {
  let output = "";
  for await (const text of server.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += text;
    const [url, token] = [/^address: (\S+)$/m.exec(output)?.[1], /Bearer (\S+)$/m.exec(output)?.[1]];
    if (url !== undefined && token !== undefined) return [url, token];
  }
  throw new Error(`The server exited: ${output}`);
}

async function* readLines(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
