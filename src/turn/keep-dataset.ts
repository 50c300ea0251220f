import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { DatasetReference } from "../protocol/turn-result.ts";
import type { EvidenceItem } from "../evidence/evidence-store.ts";
import type { DatasetArtifact } from "../evidence/dataset/dataset.ts";
import { describeError } from "./describe-error.ts";
import type { TurnParts } from "./turn-request.ts";
import type { Ledger } from "./ledger.ts";
import type { StepsEnd } from "./steps/run-steps.ts";

type DatasetSources = Pick<TurnParts, "turnId" | "runtime" | "request" | "conversation" | "plan" | "ledger" | "earlierAliases">;

/** Stores the data behind the answer. When the store fails, adds a gap and returns null. */
export async function keepDataset(turn: DatasetSources, { stopReason }: StepsEnd): Promise<DatasetReference | null> {
  const { request, ledger } = turn;
  try {
    const { datasetId, hash, bytes, url } = await request.datasets.put({
      facts: { ...describeTurn(turn), outcome: { stopReason }, provenance: await describeProvenance(turn) },
      items: findUsedItems(turn),
      artifacts: listArtifacts(ledger),
    });
    return { datasetId, hash, bytes, publicDataUrl: url };
  } catch (error) {
    ledger.gaps.push({
      code: "dataset_not_kept",
      severity: "minor",
      detail: `The data behind the answer could not be stored: ${describeError(error)}`,
    });
    return null;
  }
}

function describeTurn({ turnId, conversation, request, plan, ledger }: DatasetSources): Record<string, unknown> {
  return {
    turnId,
    conversationId: conversation.id,
    tenant: conversation.evidence.tenant,
    question: request.question,
    plan,
    stages: Array.from({ length: ledger.steps }, (_, index) => ({
      step: index + 1,
      calls: ledger.calls
        .filter(({ step }) => step === index + 1)
        .map(({ tool, server, input, status, aliases, artifacts, failure }) => {
          return { tool, server, arguments: input, status, aliases, artifacts: toHashes(artifacts), failure };
        }),
    })),
  };
}

/** Everything that is needed to compute the same results again. */
async function describeProvenance({ runtime, ledger, request }: DatasetSources): Promise<Record<string, unknown>> {
  const snapshot = ledger.cells.length === 0 ? null : await runtime.snapshot().catch(() => null);
  const { model } = request;
  return {
    snapshot: snapshot?.id ?? null,
    model: typeof model === "string" ? model : `${model.provider}:${model.modelId}`,
    cells: ledger.cells.map(({ step, tool, code, inputAliases, reason, resultAlias, artifacts, replacedIn }) => {
      return { step, tool, code, inputAliases, reason, resultAlias, artifacts: toHashes(artifacts), replacedIn };
    }),
  };
}

function toHashes(artifacts: readonly ArtifactEnvelope[]): string[] {
  return artifacts.map(({ contentHash }) => contentHash);
}

/** The artifacts of all stages, so that every hash in the dataset can be resolved: current ones first, then replaced ones. */
function listArtifacts({ artifacts, calls }: Ledger): DatasetArtifact[] {
  const current = new Set(toHashes(artifacts));
  const all = new Map([...artifacts, ...calls.flatMap((call) => call.artifacts)].map((artifact) => [artifact.contentHash, artifact]));
  return [...all.values()].map((artifact) => (current.has(artifact.contentHash) ? artifact : { ...artifact, isReplaced: true }));
}

/** The evidence of this turn, and earlier evidence that a call of this turn names. */
function findUsedItems({ conversation, earlierAliases, ledger }: DatasetSources): EvidenceItem[] {
  const { evidence } = conversation;
  const before = new Set(earlierAliases);
  const inputs = before.size === 0 ? "" : ledger.calls.map(({ input }) => JSON.stringify(input) ?? "").join("\n");
  return evidence
    .aliases()
    .filter((alias) => !before.has(alias) || new RegExp(`\\b${RegExp.escape(alias)}\\b`).test(inputs))
    .map((alias) => evidence.get(alias)!);
}
