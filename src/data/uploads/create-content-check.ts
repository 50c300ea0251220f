import type { EvidenceFormat } from "../../evidence/contract.ts";

/** Looks at bytes as they go by, without parsing them: whether they can be what their name says. */
export interface ContentCheck {
  update(chunk: Uint8Array): void;
  /** The rest of a sentence, or null when nothing speaks against it. */
  problem(): string | null;
}

const LOOKED_AT = 4096;

export function createContentCheck(format: EvidenceFormat): ContentCheck {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  return {
    update(chunk) {
      if (head.length < LOOKED_AT) head = Buffer.concat([head, chunk.subarray(0, LOOKED_AT - head.length)]);
      tail = Buffer.concat([tail, chunk.subarray(-4)]).subarray(-4);
    },
    problem() {
      if (format === "parquet") {
        const isWhole = head.subarray(0, 4).toString("latin1") === "PAR1" && tail.toString("latin1") === "PAR1";
        return isWhole ? null : "it is no whole Parquet file: the marks at its beginning and end are missing";
      }
      if (format === "xlsx") return head.subarray(0, 2).toString("latin1") === "PK" ? null : "it is no Excel workbook (.xlsx)";
      return head.includes(0) ? "it is no text in UTF-8: it has zero bytes, as binary files and UTF-16 have" : null;
    },
  };
}
