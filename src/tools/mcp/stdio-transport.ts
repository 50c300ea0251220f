import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { isJSONRPCResponse, parseJSONRPCMessage, type JSONRPCMessage, type RequestId, type Transport } from "@modelcontextprotocol/client";
import { LARGE_BYTES, type MessageRead, type OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { scanMessage } from "../../text/json.ts";
import type { CallContext, CallContexts } from "./call-context.ts";
import { LineSplitter } from "./line-splitter.ts";

export interface StdioTransportOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly maxMessageBytes: number;
  readonly killAfterMs: number;
  readonly contexts: CallContexts;
  readonly reader: OutputReader;
  readonly onStderr: (line: string) => void;
  /** Takes what it prints on stdout and is no message. */
  readonly onGarbage: (text: string) => void;
}

/**
 * A child process that speaks one JSON message a line. The SDK's own transport is not used: it joins its buffer at every chunk, gives the child six
 * variables of ours whatever it is told, forgets how the child ended, and leaves the child's own children behind.
 *
 * The child leads a process group of its own, which ends with it. What leaves the group (setsid) is out of reach.
 */
export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: JSONRPCMessage) => void) | undefined;
  /** How the child ended; null while it runs. */
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | null = null;
  /** Why we ended it, when it was for something it did. */
  fault: string | null = null;
  /** The first line on stdout that was no message. */
  garbage: string | null = null;
  readonly stderr: TextTail;

  readonly #options: StdioTransportOptions;
  readonly #waiting = new Map<RequestId, CallContext>();
  /** Calls that nobody waits for any more; their answers may still come. */
  readonly #abandoned = new Set<RequestId>();
  /** Large messages that have come and are being read. */
  readonly #reading = new Set<Promise<void>>();
  readonly #ended = Promise.withResolvers<void>();
  #child: ChildProcess | null = null;
  #closing: Promise<void> | null = null;
  #isOver = false;

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    this.stderr = new TextTail(options.onStderr);
  }

  /** With `stderr`, how the SDK tells that a probe of the version must not be lost with the process. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  async start(): Promise<void> {
    const { command, args, environment, cwd } = this.#options;
    const child = spawn(command, args, { cwd, env: environment, stdio: ["pipe", "pipe", "pipe"], detached: true, windowsHide: true });
    this.#child = child;
    this.#listen(child);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        if (child.pid === undefined) this.#finish();
        reject(error);
      });
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin || this.#isOver) throw new Error("The server's process has ended.");
    this.#remember(message);
    const error = await new Promise<Error | null | undefined>((resolve) => stdin.write(`${JSON.stringify(message)}\n`, resolve));
    if (!error) return;
    await this.close(); // it no longer reads: how it ended says more than EPIPE
    throw error;
  }

  /** Closes its input, then SIGTERM, then SIGKILL. Nothing of the group is left when it resolves. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    if (this.#child === null || this.#isOver) return;
    this.#child.stdin?.end();
    if (this.exit !== null) return this.#finish();
    if (await this.#endsWithin(GRACE_MS)) return;
    this.#signal("SIGTERM");
    if (await this.#endsWithin(this.#options.killAfterMs)) return;
    this.#signal("SIGKILL");
    if (!(await this.#endsWithin(GIVE_UP_MS))) this.#finish();
  }

  #listen(child: ChildProcess): void {
    const lines = new LineSplitter(this.#options.maxMessageBytes);
    child.stdout?.on("data", (chunk: Buffer) => {
      try {
        for (const line of lines.push(chunk)) {
          if (line.length < LARGE_BYTES) this.#receive(line);
          else this.#receiveLarge(line);
        }
      } catch (error) {
        this.#fail(error as Error);
      }
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => this.stderr.push(text));
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", (error) => this.onerror?.(error));
    child.once("exit", (code, signal) => {
      this.exit = { code, signal };
      // Its last words may still be in the pipes; a grandchild can hold these open for ever.
      if (this.#closing !== null) this.#finish();
      else setTimeout(() => void this.#finishWhenRead(), DRAIN_MS).unref();
    });
    child.once("close", () => void this.#finishWhenRead());
  }

  /** An answer that has come whole is an answer, even if the child has ended meanwhile. */
  async #finishWhenRead(): Promise<void> {
    await Promise.all(this.#reading);
    this.#finish();
  }

  #receive(line: Buffer): void {
    const text = line.toString("utf8");
    if (text.trim() === "") return;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return this.#refuse(text);
    }
    if (Array.isArray(value)) for (const item of value) this.#deliver(item, null, line.length);
    else this.#deliver(value, text, line.length);
  }

  #receiveLarge(line: Buffer): void {
    const bytes = line.length;
    const calls = [...this.#waiting].filter(([, { isToolCall }]) => isToolCall).map(([id]) => id);
    const reading = this.#options.reader.readMessage(line, [...calls, ...this.#abandoned]).then(
      (message) => this.#deliverRead(message, bytes),
      (error: Error) => this.#fail(error),
    );
    this.#reading.add(reading);
    void reading.finally(() => this.#reading.delete(reading));
  }

  #deliverRead(message: MessageRead, bytes: number): void {
    if (message.kind === "garbage") return this.#refuse(message.text);
    if (message.kind === "other") return this.#receive(Buffer.from(message.bytes.buffer));
    const { id, result, read } = message;
    const context = this.#waiting.get(id);
    if (context !== undefined) context.read = read;
    this.#deliver({ jsonrpc: "2.0", id, result }, null, bytes);
  }

  #deliver(value: unknown, text: string | null, bytes: number): void {
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(value);
    } catch {
      return this.#refuse(text ?? JSON.stringify(value));
    }
    if (!isJSONRPCResponse(message)) return this.onmessage?.(message);
    const { id } = message;
    if (id !== undefined && this.#abandoned.delete(id)) return; // the SDK would print it whole
    const context = id === undefined ? undefined : this.#waiting.get(id);
    if (context !== undefined) {
      this.#waiting.delete(id!);
      context.answerBytes = bytes;
      if (text !== null && "result" in message && "structuredContent" in message.result)
        context.structuredJson = scanMessage(text).structuredJson;
    }
    // The SDK takes notifications a tick later than answers: the last progress of a call would come after its end.
    queueMicrotask(() => queueMicrotask(() => this.onmessage?.(message)));
  }

  #refuse(text: string): void {
    this.garbage ??= text.slice(0, 200);
    this.#options.onGarbage(text.slice(0, 200));
  }

  #remember(message: JSONRPCMessage): void {
    const context = this.#options.contexts.getStore();
    if (context === undefined || !("id" in message) || !("method" in message)) return;
    const { id } = message;
    this.#waiting.set(id, context);
    context.release = () => {
      if (this.#waiting.delete(id)) this.#abandoned.add(id);
    };
  }

  #fail(error: Error): void {
    this.fault ??= error.message;
    this.onerror?.(error);
    void this.close();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#signal("SIGKILL"); // its own children, if it left any
    this.stderr.end();
    for (const stream of [this.#child?.stdin, this.#child?.stdout, this.#child?.stderr]) stream?.destroy();
    this.#waiting.clear();
    this.#ended.resolve();
    this.onclose?.();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child?.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // Nobody is left in the group.
    }
  }

  async #endsWithin(ms: number): Promise<boolean> {
    return await Promise.race([this.#ended.promise.then(() => true), sleep(ms, false, { ref: false })]);
  }
}

/** For a server that ends by itself when its input does, as it should. */
const GRACE_MS = 300;
const DRAIN_MS = 200;
const GIVE_UP_MS = 2_000;

/** The end of a text that arrives in pieces, in whole lines, within a fixed budget. */
class TextTail {
  readonly #lines: string[] = [];
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-MAX_LINE);
    for (const line of lines) this.#keep(line);
  }

  /** What came after the last line break counts as a line. */
  end(): void {
    if (this.#rest !== "") this.#keep(this.#rest);
    this.#rest = "";
  }

  last(count: number): string[] {
    return [...this.#lines, ...(this.#rest === "" ? [] : [this.#rest])].slice(-count);
  }

  #keep(line: string): void {
    const text = line.slice(0, MAX_LINE).trimEnd();
    if (text === "") return;
    this.#lines.push(text);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
    this.#onLine(text);
  }
}

const MAX_LINE = 2_000;
const MAX_LINES = 50;
