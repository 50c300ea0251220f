/** What can be read of a call, whatever else is wrong with it. Nothing here has been checked but its outermost type. */
export interface ReadableCall {
  readonly code: string | null;
  readonly inputs: ReadonlyMap<string, unknown>;
  readonly operation: unknown;
  readonly reason: unknown;
  readonly inputAliases: readonly unknown[] | null;
  readonly expectedArtifacts: readonly unknown[] | null;
}

export function readCall(input: unknown): ReadableCall {
  const call = asRecord(input);
  const contract = asRecord(call["postProcessingContract"]);
  const { code } = call;
  return {
    code: typeof code === "string" ? code : null,
    inputs: new Map(Object.entries(asRecord(call["inputs"]))),
    operation: contract["operation"],
    reason: contract["reason"],
    inputAliases: asArray(contract["inputAliases"]),
    expectedArtifacts: asArray(contract["expectedArtifacts"]),
  };
}

/** Own properties only, so that nothing comes from a prototype. */
function asRecord(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return Object.create(null) as Record<string, unknown>;
  return Object.assign(Object.create(null), value) as Record<string, unknown>;
}

function asArray(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? (value as unknown[]) : null;
}
