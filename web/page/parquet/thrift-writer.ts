/** The thrift compact protocol, as much of it as a Parquet file's metadata needs. */
export class ThriftWriter {
  readonly #bytes: number[] = [];

  bytes(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.#bytes);
  }

  /** Fields in the order of their ids; those without a value are left out. */
  struct(fields: readonly ThriftField[]): this {
    let before = 0;
    for (const { id, type, value } of fields) {
      this.#bytes.push(((id - before) << 4) | typeCodes[type]);
      before = id;
      this.#value(type, value);
    }
    this.#bytes.push(0);
    return this;
  }

  #value(type: ThriftType, value: unknown): void {
    if (type === "i32" || type === "i64") this.#varint(zigzag(value as number));
    else if (type === "text") this.#text(value as string);
    else if (type === "struct") this.struct(value as ThriftField[]);
    else this.#list(value as { of: ThriftType; items: unknown[] });
  }

  #list({ of, items }: { of: ThriftType; items: unknown[] }): void {
    if (items.length < 15) this.#bytes.push((items.length << 4) | typeCodes[of]);
    else {
      this.#bytes.push(0xf0 | typeCodes[of]);
      this.#varint(BigInt(items.length));
    }
    for (const item of items) this.#value(of, item);
  }

  #text(text: string): void {
    const encoded = new TextEncoder().encode(text);
    this.#varint(BigInt(encoded.length));
    for (const byte of encoded) this.#bytes.push(byte);
  }

  #varint(value: bigint): void {
    let rest = value;
    for (; rest >= 0x80n; rest >>= 7n) this.#bytes.push(Number(rest & 0x7fn) | 0x80);
    this.#bytes.push(Number(rest));
  }
}

type ThriftType = "i32" | "i64" | "text" | "list" | "struct";

export interface ThriftField {
  readonly id: number;
  readonly type: ThriftType;
  readonly value: unknown;
}

const typeCodes = { i32: 5, i64: 6, text: 8, list: 9, struct: 12 } as const;

function zigzag(value: number): bigint {
  const whole = BigInt(value);
  return whole >= 0n ? whole << 1n : (-whole << 1n) - 1n;
}
