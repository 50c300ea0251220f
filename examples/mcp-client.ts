/**
 * Does what a desktop client does: starts `sluice mcp` with a folder of data files and calls its tools. Run it: `node examples/mcp-client.ts`.
 * In a project with the package, the command is `npx sluice mcp`.
 */
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const command = path.join(import.meta.dirname, "../bin/sluice");
const args = ["mcp", "--data", path.join(import.meta.dirname, "data")];
const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env as Record<string, string>, stderr: "ignore" }));

/** Normally, a model writes the cell. It uses the files and the stored data by alias. */
const code = `
sold = to_frame(orders).assign(sales=lambda rows: rows["quantity"] * rows["price"]).groupby("item")["sales"].sum()
targets = to_frame(targets).set_index("item")["target"]
ax = sold.plot.bar(title="Sales by item", label="sales")
ax.plot(sold.index, targets[sold.index], "o", color="black", label="target")
ax.legend()
save_figure("Sales of cake, coffee and tea as bars, with the target of each")
set_result((sold - targets).round(2))
`;
const postProcessingContract = {
  operation: "aggregate",
  reason: "Sales against targets.",
  inputAliases: ["orders", "targets"],
  expectedArtifacts: ["image"],
};

try {
  const { tools } = await client.listTools();
  console.log(tools.map(({ name }) => name).join(" "));
  const files = await client.callTool({ name: "list_data", arguments: {} });
  console.log("list_data:", JSON.stringify(files.structuredContent));
  await client.callTool({ name: "store_data", arguments: { name: "targets", csv: "item,target\ncake,20\ncoffee,30\ntea,40\n" } });
  const { content, structuredContent } = await client.callTool({ name: "code_interpreter", arguments: { code, postProcessingContract } });
  console.log("code_interpreter:", JSON.stringify(Object(structuredContent).result));
  for (const part of content) if (part.type === "image") console.log(part.mimeType, `${Math.round(part.data.length / 1000)} kB`);
} finally {
  await client.close();
}
