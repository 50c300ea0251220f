import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const example = (name: string): string => path.join(import.meta.dirname, "..", "examples", name);

test("library.ts runs cells that share variables, and a failed cell leaves no trace", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example("library.ts")], { timeout: 110_000 });
  expect(stdout.split("\n")).toEqual([
    'ok [{"day":1,"A":100,"B":50},{"day":2,"A":103,"B":49}]',
    "python_error KeyError line 2",
    "image 827×680 Prices of A and B on two days",
    'ok ["A","B"]',
    "",
  ]);
}, 120_000);

test("ai-sdk-app.ts fetches, computes, fixes its own mistake, draws and answers", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example("ai-sdk-app.ts")], { timeout: 110_000 });
  expect(stdout.split("\n")).toEqual([
    expect.stringMatching(/^get_prices \{"alias":"get_prices_1","_contextAlias":"get_prices_1",/),
    "code_interpreter KeyError: 'prize' (line 2)",
    "python_code_edit 102.99",
    "render_chart 300 points",
    "The mean price of A over 300 days is 102.99.",
    "",
  ]);
}, 120_000);

test("mcp-client.ts computes with given files and stored data", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example("mcp-client.ts")], { timeout: 110_000 });
  expect(stdout.split("\n")).toEqual([
    expect.stringMatching(/^code_interpreter python_code_edit render_chart store_data list_data read_data /),
    expect.stringMatching(/^list_data: \{"data":\[\{"alias":"orders","_contextAlias":"orders","source":"file",/),
    'code_interpreter: [{"item":"cake","value":2.5},{"item":"coffee","value":2},{"item":"tea","value":-8}]',
    expect.stringMatching(/^image\/png \d+ kB$/),
    "",
  ]);
}, 120_000);

test("http-client.ts asks the server, follows the turn, and downloads the figure, the chart and a table", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example("http-client.ts")], { timeout: 110_000 });
  const lines = stdout.split("\n");
  expect(lines.slice(0, 4).sort()).toEqual(["code_interpreter ok", "get_prices ok", "get_reserves ok", "render_chart ok"]);
  expect(lines.slice(4)).toEqual([
    expect.stringMatching(/^Total reserves of the venues fell by 106,201 BTC /),
    "image 200 image/png",
    "chart 200 application/json",
    "date,open,high,low,close,volume",
    "",
  ]);
}, 120_000);

test("code-mode.ts pages through a real backend, catches its failures, and computes with the tool outputs", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [example("code-mode.ts")], { timeout: 110_000 });
  expect(stdout.split("\n")).toEqual([
    "search: 2 of 14 tools",
    'execute: ok {"campaigns":57,"usages":18,"failed":["ADS_API_HTTP_500","ADS_API_HTTP_500"]} 26 calls, 21 results kept, on monty',
    'code_interpreter: {"archived":6,"enabled":41,"paused":10}',
    "",
  ]);
}, 120_000);
