import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { dataTools } from "../../../data/data-tools.ts";
import { toErrorReply } from "../results/to-call-result.ts";
import { outputSchemas } from "./output-schemas.ts";
import type { SluiceTool } from "./sluice-tool.ts";

/** `store_data`, `list_data` and `read_data`. */
export function createMcpDataTools(): readonly SluiceTool[] {
  return dataTools.map(({ name, title, description, inputSchema, annotations, call }) => ({
    listing: {
      name,
      title,
      description,
      inputSchema: z.toJSONSchema(inputSchema, { io: "input" }) as Tool["inputSchema"],
      outputSchema: outputSchemas[name]!,
      annotations: { title, ...annotations },
    },
    async run({ entered, args, signal }) {
      const answer = await call(entered.session.data, args, { signal });
      return answer.ok ? { json: answer.json, isError: false } : toErrorReply(answer.envelope);
    },
  }));
}
