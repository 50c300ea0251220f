import { z } from "zod";
import { createEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { Turn } from "../open-turn.ts";

/** How a model says that it is done. */
export interface FinalResponse {
  answer: string;
  claims: { text: string; aliases: string[] }[];
  artifactsMentioned: string[];
}

const claimsSchema = z.array(z.strictObject({ text: z.string(), aliases: z.array(z.string()) }));

export const finalResponseSchema: z.ZodType<FinalResponse> = z.strictObject({
  answer: z
    .string()
    .trim()
    .min(1)
    .describe("The answer to the user, in Markdown, with its numbers and everything that is missing from it."),
  claims: claimsSchema.default([]).describe("Statements of the answer, each with the aliases of the outputs and results that it rests on."),
  artifactsMentioned: z
    .array(z.string())
    .default([])
    .describe("Content hashes, urls or titles of the figures and charts that the answer speaks of."),
});

export type FinalVerdict = { readonly ok: true; readonly final: FinalResponse } | { readonly ok: false; readonly envelope: Envelope };

/** Held against what there is: an alias or a figure that does not exist sends it back. On the last step there is no way back, so what is right of it is taken. */
export function checkFinalResponse(turn: Turn, input: unknown, { isLast }: { isLast: boolean }): FinalVerdict {
  const parsed = finalResponseSchema.safeParse(input);
  if (!parsed.success) {
    const answer = answerIn(input);
    if (isLast && answer !== null) return { ok: true, final: { answer, claims: [], artifactsMentioned: [] } };
    return { ok: false, envelope: malformed(parsed.error.issues) };
  }
  const final = parsed.data;
  const unknownAliases = final.claims.flatMap(({ aliases }) => aliases).filter((alias) => turn.conversation.evidence.get(alias) === null);
  const unknownArtifacts = final.artifactsMentioned.filter((name) => !isPublished(turn, name));
  if (unknownAliases.length === 0 && unknownArtifacts.length === 0) return { ok: true, final };
  if (isLast)
    return {
      ok: true,
      final: {
        ...final,
        claims: final.claims.map((claim) => withoutAliases(claim, unknownAliases)),
        artifactsMentioned: final.artifactsMentioned.filter((name) => !unknownArtifacts.includes(name)),
      },
    };
  return { ok: false, envelope: unknownNames(turn, unknownAliases, unknownArtifacts) };
}

function withoutAliases({ text, aliases }: FinalResponse["claims"][number], unknown: readonly string[]): FinalResponse["claims"][number] {
  return { text, aliases: aliases.filter((alias) => !unknown.includes(alias)) };
}

function isPublished({ ledger }: Turn, name: string): boolean {
  return ledger.artifacts.some((artifact) =>
    [artifact.contentHash, artifact.url, artifact.title, artifact.kind === "image" ? artifact.alt : undefined].includes(name),
  );
}

function answerIn(input: unknown): string | null {
  if (typeof input !== "object" || input === null || !("answer" in input) || typeof input.answer !== "string") return null;
  return input.answer.trim() || null;
}

function malformed(issues: readonly z.core.$ZodIssue[]): Envelope {
  const details = issues.map(({ path, message }) => ({ path: path.join("."), issue: message, received_type: "object" }));
  return createEnvelope({
    code: "SCHEMA_VALIDATION_FAILED",
    tool: "final_response",
    summary: `The answer was not taken: ${details[0]?.path || "the call"} is not as the schema says.`,
    details,
    examples: [{ answer: "The mean price is 102.99.", claims: [{ text: "The mean price is 102.99.", aliases: ["result_1"] }] }],
  });
}

function unknownNames(turn: Turn, aliases: readonly string[], artifacts: readonly string[]): Envelope {
  const known = turn.ledger.artifacts.map(({ title, contentHash }) => title ?? contentHash);
  return createEnvelope({
    code: "ALIAS_UNKNOWN",
    tool: "final_response",
    summary: `The answer was not taken: it rests on what is not there (${[...aliases, ...artifacts].slice(0, 5).join(", ")}).`,
    details: [
      ...aliases.map((alias) => ({ path: "claims", issue: `${JSON.stringify(alias)} is no alias`, received_type: "string" })),
      ...artifacts.map((name) => ({
        path: "artifactsMentioned",
        issue: `${JSON.stringify(name)} was not published`,
        received_type: "string",
      })),
    ],
    hints: [
      `Aliases: ${turn.conversation.evidence.aliases().slice(-20).join(", ") || "none yet"}.`,
      `Figures and charts: ${known.join(", ") || "none"}.`,
      "Draw the figure first, or leave it out and say that it is missing.",
    ],
  });
}
