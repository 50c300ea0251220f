import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { envelopeSchema } from "../../../errors/envelope.ts";

type Properties = Readonly<Record<string, object>>;
type OutputSchema = NonNullable<Tool["outputSchema"]>;

const text = { type: "string" } as const;
const texts = { type: "array", items: text } as const;
const objects = { type: "array", items: { type: "object" } } as const;
const count = { type: "integer", minimum: 0 } as const;

/** A failure has the same form everywhere: `error` is the v1 envelope. */
const failure: Properties = { status: text, error: z.toJSONSchema(envelopeSchema, { io: "output", unrepresentable: "any" }) };

/** Clients without a connection read these beside the answer. */
const ofSession: Properties = {
  session: text,
  state_scope: { enum: ["session", "request"] },
  session_note: text,
  sandbox_note: text,
};

function answer(properties: Properties, required: readonly string[] = []): OutputSchema {
  const { $schema: _, ...error } = failure["error"] as Record<string, unknown>;
  return { type: "object", properties: { ...failure, error, ...ofSession, ...properties }, required: [...required] };
}

const charts = {
  type: "array",
  items: {
    type: "object",
    properties: { kind: { const: "chart" }, spec: { type: "object" }, data: objects, title: text, url: text, contentHash: text },
    required: ["kind", "spec", "data", "url"],
  },
} as const;

const cell = answer(
  {
    status: {
      enum: ["ok", "python_error", "timeout", "out_of_memory", "output_limit", "crashed", "contract_violation", "sandbox_lost", "refused"],
    },
    result: {},
    resultAlias: text,
    resultPreview: {},
    stdout: text,
    stderr: text,
    artifacts: objects,
    charts,
    notes: texts,
    repair: { type: "object" },
    survives: text,
  },
  ["status"],
);

const ofState = {
  session_present: { type: "boolean" },
  state_reason: { enum: ["no_mcp_session", "token_swapped", "bridge_unavailable", null] },
  note: text,
} as const;
const name = { type: ["string", "null"] } as const;
const active = answer({ ...ofState, identity: name, region: name, profile: name, available: { type: "object" } });

/** What the structured content of each tool looks like. Fields may be added later. */
export const outputSchemas: Readonly<Record<string, OutputSchema>> = {
  code_interpreter: cell,
  python_code_edit: cell,
  render_chart: answer({ status: { enum: ["ok", "refused"] }, artifacts: objects, charts }, ["status"]),
  execute: answer(
    {
      status: { enum: ["ok", "error", "refused"] },
      result: {},
      resultAlias: text,
      prints: text,
      aliases: objects,
      warnings: texts,
      engine: { enum: ["monty", "cpython"] },
      engineReason: text,
      toolCalls: count,
      timing: { type: "object" },
    },
    ["status"],
  ),
  search: answer({ found: text, tools: objects, hints: texts, gaps: texts }),
  get_schema: answer({ tools: objects, notFound: objects, gaps: texts }),
  tags: answer({ tags: objects, total: count, gaps: texts }),
  get_envelope_contract: answer({ contract_version: { const: 1 }, keys: texts, error_kinds: objects }),
  get_session_state: answer(ofState),
  set_active_identity: active,
  set_region: active,
  set_active_profile: active,
  get_active_context: active,
  store_data: answer({}),
  list_data: answer({ data: objects, leftOut: objects, notes: texts }),
  read_data: answer({
    alias: text,
    columns: texts,
    rows: objects,
    offset: count,
    returned: count,
    total: count,
    matched: count,
    nextOffset: { type: ["integer", "null"] },
    notes: texts,
  }),
  exposed: answer({ aliases: texts, previews: { type: "array" }, warnings: texts }),
};
