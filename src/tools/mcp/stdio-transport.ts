import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { isJSONRPCResponse, parseJSONRPCMessage, type JSONRPCMessage, type RequestId, type Transport } from "@modelcontextprotocol/client";
import { LARGE_BYTES, type LargeMessage, type OutputReader } from "../../evidence/reading/create-output-reader.ts";
import { scanMessage } from "../../text/json.ts";
import type { RequestContext, RequestContexts } from "./backend-connection.ts";
import { LineSplitter } from "./line-splitter.ts";

export interface StdioTransportOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  readonly maxMessageBytes: number;
  readonly killAfterMs: number;
  readonly contexts: RequestContexts;
  readonly reader: OutputReader;
  readonly onStderr: (line: string) => void;
  /** Receives lines on stdout that are not messages. */
  readonly onGarbage: (text: string) => void;
}

/**
 * Talks to a child process in lines of JSON. Replaces the SDK's transport, which joins its buffer at every chunk, always passes six of our environment
 * variables to the child, does not report how the child exited, and leaves the child's own children running.
 *
 * The child leads its own process group, which is killed when the child exits. Processes that leave the group (setsid) survive.
 */
export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: JSONRPCMessage) => void) | undefined;
  /** How the child exited; null while it runs. */
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | null = null;
  /** The protocol violation for which we stopped the child. */
  fault: string | null = null;
  /** The first line on stdout that was not a message. */
  garbage: string | null = null;
  readonly stderr: TextTail;

  readonly #options: StdioTransportOptions;
  readonly #pending = new Map<RequestId, RequestContext>();
  /** Cancelled requests whose answers can still arrive. */
  readonly #cancelled = new Set<RequestId>();
  /** Large messages that the reader is working on. */
  readonly #reading = new Set<Promise<void>>();
  readonly #ended = Promise.withResolvers<void>();
  #child: ChildProcess | null = null;
  #closing: Promise<void> | null = null;
  #isFinished = false;

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    this.stderr = new TextTail(options.onStderr);
  }

  /** The SDK recognizes a stdio transport by its properties `pid` and `stderr`. */
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
    if (!stdin || this.#isFinished) throw new Error("The server's process has ended.");
    this.#register(message);
    const error = await new Promise<Error | null | undefined>((resolve) => stdin.write(`${JSON.stringify(message)}\n`, resolve));
    if (!error) return;
    await this.close(); // so that the error can say how the child exited, which is more than EPIPE
    throw error;
  }

  /** Closes stdin, then sends SIGTERM, then SIGKILL. The whole process group has exited when it resolves. */
  close(): Promise<void> {
    this.#closing ??= this.#stop();
    return this.#closing;
  }

  async #stop(): Promise<void> {
    if (this.#child === null || this.#isFinished) return;
    this.#child.stdin?.end();
    if (this.exit !== null) return this.#finish();
    if (await this.#finishesWithin(GRACE_MS)) return;
    this.#signal("SIGTERM");
    if (await this.#finishesWithin(this.#options.killAfterMs)) return;
    this.#signal("SIGKILL");
    if (!(await this.#finishesWithin(KILL_WAIT_MS))) this.#finish();
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
      // Read what is left in the pipes, but do not wait until they close: a grandchild can keep them open.
      if (this.#closing !== null) this.#finish();
      else setTimeout(() => void this.#finishWhenRead(), DRAIN_MS).unref();
    });
    child.once("close", () => void this.#finishWhenRead());
  }

  /** First delivers large answers that arrived before the child exited. */
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
      return this.#reportGarbage(text);
    }
    if (Array.isArray(value)) for (const item of value) this.#deliver(item, null, line.length);
    else this.#deliver(value, text, line.length);
  }

  #receiveLarge(line: Buffer): void {
    const bytes = line.length;
    const calls = [...this.#pending].filter(([, { isToolCall }]) => isToolCall).map(([id]) => id);
    const reading = this.#options.reader.readMessage(line, [...calls, ...this.#cancelled]).then(
      (message) => this.#deliverLarge(message, bytes),
      (error: Error) => this.#fail(error),
    );
    this.#reading.add(reading);
    void reading.finally(() => this.#reading.delete(reading));
  }

  #deliverLarge(message: LargeMessage, bytes: number): void {
    if (message.kind === "garbage") return this.#reportGarbage(message.text);
    if (message.kind === "other") return this.#receive(Buffer.from(message.bytes.buffer));
    const { id, result, read } = message;
    const context = this.#pending.get(id);
    if (context !== undefined) context.read = read;
    this.#deliver({ jsonrpc: "2.0", id, result }, null, bytes);
  }

  #deliver(value: unknown, text: string | null, bytes: number): void {
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(value);
    } catch {
      return this.#reportGarbage(text ?? JSON.stringify(value));
    }
    if (!isJSONRPCResponse(message)) return this.onmessage?.(message);
    const { id } = message;
    if (id !== undefined && this.#cancelled.delete(id)) return; // the SDK would log the whole answer
    const context = id === undefined ? undefined : this.#pending.get(id);
    if (context !== undefined) {
      this.#pending.delete(id!);
      context.answerBytes = bytes;
      if (text !== null && "result" in message && "structuredContent" in message.result)
        context.structuredJson = scanMessage(text).structuredJson;
    }
    // The SDK handles notifications a tick later than answers. Without the delay, the last progress would arrive after its call has ended.
    queueMicrotask(() => queueMicrotask(() => this.onmessage?.(message)));
  }

  #reportGarbage(text: string): void {
    this.garbage ??= text.slice(0, 200);
    this.#options.onGarbage(text.slice(0, 200));
  }

  #register(message: JSONRPCMessage): void {
    const context = this.#options.contexts.getStore();
    if (context === undefined || !("id" in message) || !("method" in message)) return;
    const { id } = message;
    this.#pending.set(id, context);
    context.release = () => {
      if (this.#pending.delete(id)) this.#cancelled.add(id);
    };
  }

  #fail(error: Error): void {
    this.fault ??= error.message;
    this.onerror?.(error);
    void this.close();
  }

  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#signal("SIGKILL"); // kill children that it left
    this.stderr.end();
    for (const stream of [this.#child?.stdin, this.#child?.stdout, this.#child?.stderr]) stream?.destroy();
    this.#pending.clear();
    this.#ended.resolve();
    this.onclose?.();
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child?.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // The process group is empty.
    }
  }

  async #finishesWithin(ms: number): Promise<boolean> {
    return await Promise.race([this.#ended.promise.then(() => true), sleep(ms, false, { ref: false })]);
  }
}

/** Time for a server to exit by itself after its stdin is closed. */
const GRACE_MS = 300;
/** Time to read the pipes of a child that has exited. */
const DRAIN_MS = 200;
const KILL_WAIT_MS = 2_000;

/** Keeps the last lines of a text that arrives in pieces. */
class TextTail {
  readonly #lines: string[] = [];
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = (lines.pop() ?? "").slice(-MAX_LINE_CHARACTERS);
    for (const line of lines) this.#append(line);
  }

  /** Appends the text after the last line break. */
  end(): void {
    if (this.#rest !== "") this.#append(this.#rest);
    this.#rest = "";
  }

  last(count: number): string[] {
    return [...this.#lines, ...(this.#rest === "" ? [] : [this.#rest])].slice(-count);
  }

  #append(line: string): void {
    const text = line.slice(0, MAX_LINE_CHARACTERS).trimEnd();
    if (text === "") return;
    this.#lines.push(text);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
    this.#onLine(text);
  }
}

const MAX_LINE_CHARACTERS = 2_000;
const MAX_LINES = 50;
