/** `sluice/ai-sdk`: for programs that use a model of the AI SDK. Has the tools for your own loop, and complete turns. */
import "../require-node.ts";
export { createCodeInterpreterTools, createExecuteTools, type CodeInterpreterTools } from "../turn/tools/create-code-interpreter-tools.ts";
export { runTurn } from "../turn/run-turn.ts";
export type { TurnRequest, TurnRuntime } from "../turn/turn-request.ts";
export { CHART_REQUIRED_STEP_BUDGET_BOOST, STEP_BUDGET, type TurnBudgets } from "../turn/budgets.ts";
export { createConversation, type Conversation } from "../turn/create-conversation.ts";
export { createApprovals, type Approvals } from "../turn/create-approvals.ts";
export { buildBestEffortTerminalOutcome } from "../turn/answer/build-best-effort-terminal-outcome.ts";
export { openModel, type OpenModelOptions } from "../models/open-model.ts";
export { createScriptedModel } from "../models/create-scripted-model.ts";
export type { ModelScript } from "../models/model-script.ts";
