import type { ToolPolicyOptions } from "../tools/tool-policy.ts";
import type { Configuration } from "./loaded-configuration.ts";

/** The policy that the configuration asks for: its own list, and what each server's entry allows of that server's tools. */
export function toolPolicyOf({
  tools,
  mcpServers,
}: Pick<Configuration, "tools" | "mcpServers">): Pick<ToolPolicyOptions, "allow" | "toolPolicy"> {
  const ofServers = Object.entries(mcpServers).flatMap(([server, { allow = [] }]) => allow.map((tool) => `${server}__${tool}`));
  return { toolPolicy: tools.toolPolicy, allow: [...new Set([...tools.allow, ...ofServers])] };
}
