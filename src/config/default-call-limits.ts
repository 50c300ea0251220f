import { defaultMcpLimits } from "../mcp/client/contract.ts";
import { DEFAULT_CONCURRENT_CALLS } from "../tools/create-tool-catalog.ts";
import type { CallLimits } from "./contract.ts";

export const defaultCallLimits: CallLimits = { ...defaultMcpLimits, maxConcurrentCalls: DEFAULT_CONCURRENT_CALLS };
