import type { ReadPart } from "../output-part.ts";

/** An output that a thread has read: its parts as they are kept, the main one first, and what their previews are made of. */
export class ReadOutput {
  readonly parts: readonly ReadPart[];

  constructor(parts: readonly ReadPart[]) {
    this.parts = parts;
  }
}
