import type { z } from "zod";
import { cellRunCreationSchema, cellRunSchema } from "../../protocol/http-cells.ts";
import { chatRequestSchema } from "../../protocol/http-chat.ts";
import { conversationChangeSchema, conversationListSchema, conversationSchema } from "../../protocol/http-conversations.ts";
import { httpErrorSchema } from "../../protocol/http-error.ts";
import {
  healthSchema,
  loginLinkSchema,
  operationsSchema,
  readinessSchema,
  selfTestSchema,
  serverInfoSchema,
} from "../../protocol/http-operations.ts";
import { aliasListSchema, aliasSchema, tableRowsSchema, tableSchemaSchema } from "../../protocol/http-tables.ts";
import {
  approvalAnswerSchema,
  approvalTakenSchema,
  turnCreationSchema,
  turnDocumentSchema,
  turnListSchema,
  turnStopSchema,
} from "../../protocol/http-turns.ts";

/** What the schemas are called in the document. */
export const schemaNames: ReadonlyMap<z.ZodType, string> = new Map<z.ZodType, string>([
  [httpErrorSchema, "Error"],
  [chatRequestSchema, "ChatRequest"],
  [conversationListSchema, "ConversationList"],
  [conversationSchema, "Conversation"],
  [conversationChangeSchema, "ConversationChange"],
  [turnCreationSchema, "TurnCreation"],
  [turnDocumentSchema, "Turn"],
  [turnListSchema, "TurnList"],
  [turnStopSchema, "TurnStop"],
  [approvalAnswerSchema, "ApprovalAnswer"],
  [approvalTakenSchema, "ApprovalTaken"],
  [cellRunCreationSchema, "CellRunCreation"],
  [cellRunSchema, "CellRun"],
  [aliasSchema, "Alias"],
  [aliasListSchema, "AliasList"],
  [tableSchemaSchema, "TableSchema"],
  [tableRowsSchema, "TableRows"],
  [serverInfoSchema, "ServerInfo"],
  [operationsSchema, "Operations"],
  [selfTestSchema, "SelfTest"],
  [healthSchema, "Health"],
  [readinessSchema, "Readiness"],
  [loginLinkSchema, "LoginLink"],
]);
