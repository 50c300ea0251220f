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
  /** Everything that was read, as it was before it had to give way. */
  texts(): Iterable<string>;
}

export function createObservations(): Observations {
  const byCall = new Map<string, Observation>();
  const texts = new Map<string, string>();
  return {
    add(callId, observation) {
      byCall.set(callId, observation);
      if (!texts.has(callId)) texts.set(callId, observation.text);
    },
    get: (callId) => byCall.get(callId) ?? null,
    entries: () => byCall.entries(),
    texts: () => texts.values(),
  };
}
