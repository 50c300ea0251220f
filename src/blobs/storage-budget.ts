import { SluiceError } from "../errors/sluice-error.ts";

export interface StorageBudgetOptions {
  readonly maxBytes: number;
  /** What is stored now, in bytes. Called for each check. */
  readonly measure: () => number;
}

/** Limits what all stores of one conversation may hold together. A store asks before it stores anything, so that what is stored is never cut or removed. */
export interface StorageBudget {
  /** Throws CONVERSATION_FULL if `bytes` more do not fit. `subject` begins the message. */
  check(subject: string, bytes: number): void;
  /** Counts content that arrives, so that several uploads at once cannot exceed the limit together. Throws CONVERSATION_FULL if `expectedBytes` do not fit. */
  expect(subject: string, expectedBytes: number): Arrival;
}

/** Content that is arriving. Dispose it when the content is stored, and so measured, or refused. */
interface Arrival extends Disposable {
  /** Passes the content on. Throws CONVERSATION_FULL as soon as there is more of it than fits. */
  count(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
}

/** Content that was not announced is checked each time when this much of it has arrived, and at its end. */
const CHECK_EVERY_BYTES = 1 << 20;

export function createStorageBudget({ maxBytes, measure }: StorageBudgetOptions): StorageBudget {
  let arriving = 0;

  function check(subject: string, bytes: number): void {
    const seen = measure() + arriving + bytes;
    if (seen > maxBytes) throw full({ subject, bytes, seen, allowed: maxBytes });
  }

  function expect(subject: string, expectedBytes: number): Arrival {
    check(subject, expectedBytes);
    let counted = expectedBytes;
    arriving += counted;
    const countTo = (bytes: number): void => {
      arriving += bytes - counted;
      counted = bytes;
    };
    return {
      async *count(content) {
        let arrived = 0;
        let checked = expectedBytes;
        for await (const chunk of content) {
          arrived += chunk.length;
          if (arrived > counted) countTo(arrived);
          if (arrived - checked >= CHECK_EVERY_BYTES) {
            check(subject, 0);
            checked = arrived;
          }
          yield chunk;
        }
        if (arrived > expectedBytes) check(subject, 0);
      },
      [Symbol.dispose]: () => countTo(0),
    };
  }

  return { check, expect };
}

interface Overrun {
  readonly subject: string;
  readonly bytes: number;
  readonly seen: number;
  readonly allowed: number;
}

function full({ subject, bytes, seen, allowed }: Overrun): SluiceError {
  const found =
    bytes > 0
      ? `${subject} has ${bytes} bytes. With it, the conversation would have ${seen} bytes on disk`
      : `${subject} was refused: the conversation has ${seen} bytes on disk, with what is arriving`;
  return new SluiceError({
    code: "CONVERSATION_FULL",
    message: `${found}; ${allowed} are allowed (server.conversationBytes).`,
    details: { bytes, seen, allowed },
  });
}
