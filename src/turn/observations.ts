/** What a model reads of one call. */
export interface Observation {
  readonly text: string;
  readonly isError: boolean;
  /** Outputs whose previews the text is; they are made anew, smaller, when there are too many. Empty for any other answer. */
  readonly previews: readonly string[];
  /** What is left of another answer when it has to give way. */
  readonly brief: string;
}

/** By the id of the call. The order is that in which the answers came. */
export interface Observations {
  add(callId: string, observation: Observation): void;
  get(callId: string): Observation | null;
  entries(): Iterable<[callId: string, observation: Observation]>;
}

export function createObservations(): Observations {
  const byCall = new Map<string, Observation>();
  return {
    add: (callId, observation) => void byCall.set(callId, observation),
    get: (callId) => byCall.get(callId) ?? null,
    entries: () => byCall.entries(),
  };
}
