const FLUSH_MS = 50;

/** The first half of what is printed goes out as it comes, of the rest the last half is kept. */
export function createPrints(limitBytes: number, send: (header: Record<string, unknown>, body: string) => void) {
  const half = Math.floor(limitBytes / 2);
  let head = "";
  let headBytes = 0;
  let tail = "";
  let cutBytes = 0;
  let flushedAt = performance.now();

  function add(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (tail === "" && headBytes + bytes <= half) {
      head += text;
      headBytes += bytes;
    } else {
      tail += text;
      if (tail.length > half * 2) trim();
    }
    if (performance.now() - flushedAt > FLUSH_MS) flush();
  }

  function trim(): void {
    const bytes = Buffer.from(tail);
    let from = Math.max(0, bytes.length - half);
    while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    cutBytes += from;
    tail = bytes.toString("utf8", from);
  }

  /** Hands out what is new. */
  function flush(): void {
    flushedAt = performance.now();
    if (head !== "") send({ type: "print" }, head);
    head = "";
    if (tail === "") return;
    trim();
    send({ type: "tail", omittedBytes: cutBytes }, tail);
  }

  return { add, flush };
}
