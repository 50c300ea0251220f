import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allRoutes } from "../src/server/http/routes/all-routes.ts";
import { createApp } from "../src/server/http/create-app.ts";
import type { SelfTest } from "../src/protocol/http-operations.ts";
import { openTestServer, type TestServer } from "./fixtures/open-test-server.ts";

interface Operation {
  readonly operationId: string;
  readonly security?: unknown[];
  readonly parameters: { readonly name: string; readonly in: string }[];
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema?: { readonly $ref: string } }> }>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}

describe("the OpenAPI document", { timeout: 240_000 }, () => {
  let open: TestServer;
  let document: Document;
  let ajv: Ajv2020;
  beforeAll(async () => {
    open = await openTestServer();
    document = (await open.call<Document>("GET", "/api/openapi.json")).body;
    ajv = new Ajv2020({ strict: false, allErrors: true });
    (addFormats as unknown as (target: Ajv2020) => void)(ajv);
    ajv.addSchema(document, "document");
  });
  afterAll(() => open[Symbol.asyncDispose]());

  const operations = (): { method: string; path: string; operation: Operation }[] =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
    );

  /** How a response differs from its description in the document. */
  function problemsOf({
    method,
    path,
    status,
    type,
    body,
  }: {
    method: string;
    path: string;
    status: number;
    type: string;
    body: unknown;
  }): unknown {
    const operation = document.paths[path]![method]!;
    const described = operation.responses[status] ?? operation.responses["default"]!;
    const content = described.content?.[type];
    if (described.content === undefined) return body === null || body === "" ? [] : ["a body where none is described"];
    if (content === undefined) return [`${type} is not described`];
    if (content.schema === undefined) return [];
    const validate = ajv.getSchema(`document${content.schema.$ref}`)!;
    return validate(body) ? [] : validate.errors;
  }

  test("describes exactly the routes that the server has", () => {
    const { parts } = open.server;
    const { authenticator, log, metrics, workLimiter } = parts;
    const app = createApp({
      routes: allRoutes(parts),
      authenticator,
      origins: { allowedHosts: [] },
      log,
      metrics,
      workLimiter,
      page: async () => new Response(),
    });
    const served = app.routes.filter(({ path }) => path !== "/*" && path !== "*").map(({ method, path }) => `${method} ${path}`);
    const described = operations().map(
      ({ method, path }) =>
        `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}\.(\w+)/g, String.raw`:$1{[^/]+\.$2}`).replaceAll(/\{(\w+)\}/g, ":$1")}`,
    );
    expect(described.sort()).toEqual(served.sort());
    expect(new Set(operations().map(({ operation }) => operation.operationId)).size).toBe(served.length);
    expect(document.openapi).toBe("3.1.0");
  });

  test("describes every path parameter and has no broken references", () => {
    for (const { path, operation } of operations()) {
      const named = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      expect([path, named]).toEqual([path, [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)]);
    }
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name!);
    expect(references.filter((name) => !Object.hasOwn(document.components.schemas, name))).toEqual([]);
    expect(
      operations()
        .filter(({ operation }) => operation.security?.length === 0)
        .map(({ path }) => path),
    ).toEqual(["/login", "/login", "/healthz"]);
  });

  test("matches the responses of the server, successful and failed", async () => {
    const turn = (
      await open.call<{
        turnId: string;
        conversationId: string;
        result: { artifacts: { contentHash: string }[]; dataset: { datasetId: string } };
      }>("POST", "/api/turns", { question: "For the document.", wait: true })
    ).body;
    const chat = { id: "openapi", messages: [{ role: "user", parts: [{ type: "text", text: "Hm?" }] }] };
    const values: Record<string, string> = {
      turnId: turn.turnId,
      conversationId: turn.conversationId,
      alias: "get_prices_1",
      contentHash: turn.result.artifacts[0]!.contentHash,
      datasetId: turn.result.dataset.datasetId,
      approvalId: "none",
    };
    const bodies: Record<string, unknown> = {
      chat,
      createTurn: { question: "Again?", wait: true },
      renameConversation: { title: "Another" },
      answerApproval: { approved: true },
      runCell: { turnId: turn.turnId, cell: 1, code: "set_result(1)" },
      uploadFile: "a,b\n1,2\n",
      confirmLogin: "code=unknown",
      writeParquet: { columns: ["a"], rows: [[1]] },
      postMcp: { jsonrpc: "2.0", id: 1, method: "ping" },
    };
    const last = ["deleteTurn", "deleteConversation", "logout"];
    const order = operations().sort((a, b) => last.indexOf(a.operation.operationId) - last.indexOf(b.operation.operationId));
    const seen: Record<string, unknown> = {};
    for (const { method, path, operation } of order) {
      const { operationId } = operation;
      if (operationId === "selfTest" || operationId === "getMcp") continue; // tested elsewhere: one is slow, the other one streams
      const body = bodies[operationId];
      const query = operationId === "uploadFile" ? "?name=x.csv" : "";
      const sent =
        body === undefined
          ? {}
          : typeof body === "string"
            ? { body, headers: { origin: open.url } }
            : {
                body: JSON.stringify(body),
                headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
              };
      const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => values[name]!);
      const response = await open.request(`${filled}${query}`, { method: method.toUpperCase(), ...sent });
      const type = (response.headers.get("content-type") ?? "").split(";")[0]!;
      const text = await response.text();
      const answer: unknown = type === "application/json" && text !== "" ? JSON.parse(text) : text;
      if (!operationId.endsWith("Mcp"))
        expect([operationId, problemsOf({ method, path, status: response.status, type, body: answer })]).toEqual([operationId, []]);
      seen[operationId] = response.status;
    }
    expect(seen).toMatchObject({
      login: 403,
      confirmLogin: 403,
      health: 200,
      readiness: 200,
      metrics: 200,
      info: 200,
      operations: 200,
      chat: 200,
      resumeChat: 204,
      listConversations: 200,
      getConversation: 200,
      renameConversation: 200,
      uploadFile: 201,
      listAliases: 200,
      getAliasSchema: 200,
      readAliasRows: 200,
      downloadAliasCsv: 200,
      downloadAliasParquet: 200,
      downloadAliasJson: 200,
      createTurn: 200,
      listTurns: 200,
      getTurn: 200,
      followTurn: 200,
      stopTurn: 202,
      answerApproval: 404,
      runCell: 200,
      getImage: 200,
      getChart: 404,
      getDataset: 200,
      getDatasetCsv: 200,
      getDatasetParquet: 200,
      writeParquet: 200,
      createLoginLink: 201,
      openapi: 200,
      deleteTurn: 204,
      deleteConversation: 204,
      logout: 204,
    });
  });

  test("matches numbers that are the same in /metrics and /api/ops", async () => {
    const text = await (await open.request("/metrics")).text();
    for (const line of [
      /^sluice_cells_total\{status="ok"\} [1-9]\d*$/m,
      /^sluice_turns_total\{stop_reason="complete_answer"\} 3$/m,
      /^sluice_calls_total\{tool="notes__\*",status="ok"\} 3$/m,
      /^sluice_sandbox_starts_total\{start="\w+"\} [1-9]\d*$/m,
      /^sluice_artifacts_total\{kind="image"\} 3$/m,
      /^sluice_cell_run_seconds_count [1-9]\d*$/m,
      /^sluice_http_requests_total\{route="\/api\/chat",method="POST",status="200"\} 1$/m,
      /^process_resident_memory_bytes \d+$/m,
    ])
      expect(text).toMatch(line);
    const { body } = await open.call<{ turns: object; cells: { total: number }; probes: unknown[]; pool: object; selfTest: null }>(
      "GET",
      "/api/ops",
    );
    expect(body.turns).toEqual({ running: 0, queued: 0, total: 3, byStop: { complete_answer: 3 } });
    expect([body.probes.length > 5, body.selfTest]).toEqual([true, null]);
  });

  test("describes the self-test, which runs every driver and whose result then appears in /api/ops", async () => {
    const { status, body } = await open.call<SelfTest>("POST", "/api/ops/self-test");
    const described = { method: "post", path: "/api/ops/self-test", status, type: "application/json", body };
    expect([status, problemsOf(described)]).toEqual([200, []]);
    expect(body.drivers.map(({ name }) => name)).toEqual(["gvisor", "gvisor-rootless", "bubblewrap"]);
    for (const { usable, reason, checks } of body.drivers)
      expect(usable ? checks.filter(({ passed }) => !passed) : typeof reason).toEqual(usable ? [] : "string");
    const inUse = body.drivers.find(({ name }) => name === open.server.driver)!;
    expect([inUse.usable, inUse.checks.length > 3]).toEqual([true, true]);
    expect((await open.call<{ selfTest: SelfTest }>("GET", "/api/ops")).body.selfTest).toEqual(body);
  });
});
