import type { ContentKind } from "../protocol/worker-frames.ts";

/** A limit in bytes, by its name in the configuration. */
export interface ByteLimit {
  readonly name: string;
  readonly allowed: number;
}

export interface ByteCount {
  bytes: number;
}

/** A limit for several contents together. `used` grows as their bytes arrive. */
interface SharedByteLimit extends ByteLimit {
  readonly used: ByteCount;
}

export interface ContentLimits {
  /** Limit of one content, by kind. A kind that is not listed may have no bytes. */
  readonly each: Partial<Readonly<Record<ContentKind, ByteLimit>>>;
  /** Limits of all pictures and data together. */
  readonly shared?: readonly SharedByteLimit[];
}

/** Why something that a sandbox sent was refused: the limit, and what was seen of it. */
export interface Refusal {
  readonly message: string;
  readonly limit: { readonly name: string; readonly allowed: number; readonly seen: number };
}

const nouns: Readonly<Record<ContentKind, string>> = {
  image: "A picture",
  data: "The data of a figure or chart",
  result: "The result",
  params: "The parameters of a tool call",
};

/**
 * Collects contents that travel in several frames. Bytes are counted when they arrive, before they are kept, so a sandbox can never make the host hold
 * more than the limits allow.
 */
export class ArrivingContents {
  readonly #limits: ContentLimits;
  readonly #arrived = new Map<ContentKind, { readonly parts: Uint8Array[]; bytes: number }>();

  constructor(limits: ContentLimits) {
    this.#limits = limits;
  }

  /** Keeps a part of a content. Returns why not, if it exceeds a limit. */
  add(kind: ContentKind, part: Uint8Array): Refusal | null {
    if (part.length === 0) return null;
    const content = this.#arrived.get(kind) ?? { parts: [], bytes: 0 };
    const { name, allowed } = this.#limits.each[kind] ?? { name: kind, allowed: 0 };
    const bytes = content.bytes + part.length;
    if (bytes > allowed) return refuse(nouns[kind], { name, allowed, seen: bytes });
    const shared = kind === "image" || kind === "data" ? (this.#limits.shared ?? []) : [];
    for (const limit of shared) {
      const seen = limit.used.bytes + part.length;
      if (seen > limit.allowed) return refuse("The figures and charts together", { name: limit.name, allowed: limit.allowed, seen });
    }
    for (const { used } of shared) used.bytes += part.length;
    content.parts.push(part);
    content.bytes = bytes;
    this.#arrived.set(kind, content);
    return null;
  }

  /** Returns a content and forgets it. */
  take(kind: ContentKind): Uint8Array {
    const parts = this.#arrived.get(kind)?.parts ?? [];
    this.#arrived.delete(kind);
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
}

function refuse(what: string, limit: Refusal["limit"]): Refusal {
  const message = `${what} had at least ${limit.seen} bytes when the sandbox was stopped from sending more; the limit ${limit.name} is ${limit.allowed}.`;
  return { message, limit };
}
