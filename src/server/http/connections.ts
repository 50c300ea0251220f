import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { HttpFailure } from "./http-failure.ts";

export interface ConnectionLimits {
  /** Connections that have not sent a valid token or login. Also the length of the kernel's queue of connections to accept. */
  readonly maxStrangers: number;
  readonly maxPerTenant: number;
}

/** Shares of the files that the process may open: an accepted connection is one. Up to three times `maxStrangers` are open for a moment. */
export function toConnectionLimits(maxOpenFiles: number): ConnectionLimits {
  const maxStrangers = Math.min(1000, Math.max(8, Math.floor(maxOpenFiles / 10)));
  return { maxStrangers, maxPerTenant: Math.max(16, Math.floor(maxOpenFiles / 4)) };
}

/** The limit of this process. */
export function readMaxOpenFiles(): number {
  const [, limit = ""] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return limit === "" ? Infinity : Number(limit);
}

/**
 * Limits the connections of a server, so that idle and slow ones cannot use up the files that the process may open. A connection is a stranger's until one of
 * its requests has a valid token or login. When there are too many strangers, the one that came first is disconnected: new connections are always
 * accepted, and a client that sends its request at once is known before its turn comes.
 */
export class Connections implements Disposable {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #onCut: () => void;
  /** In order of arrival. */
  readonly #strangers = new Set<Socket>();
  readonly #byTenant = new Map<string, Set<Socket>>();
  readonly #socketOf = new WeakMap<Request, Socket>();
  readonly #tenantOf = new WeakMap<Socket, string>();
  readonly #runningRequests = new WeakMap<Socket, number>();
  #isCutPlanned = false;

  constructor(server: Server, limits: ConnectionLimits, onCut: () => void) {
    this.#server = server;
    this.#limits = limits;
    this.#onCut = onCut;
    server.on("connection", this.#add);
    server.prependListener("request", this.#countRequest);
  }

  get strangers(): number {
    return this.#strangers.size;
  }

  /** Call it when a request arrives. */
  register(request: Request, socket: Socket): void {
    this.#socketOf.set(request, socket);
  }

  /** Call it when a request turned out to be valid. Throws TOO_MANY_CALLS if all connections that the tenant may have are busy. */
  identify(request: Request, tenant: string): void {
    const socket = this.#socketOf.get(request);
    if (socket === undefined || this.#tenantOf.get(socket) === tenant || socket.destroyed) return;
    this.#forget(socket);
    const own = this.#byTenant.get(tenant) ?? new Set();
    if (own.size >= this.#limits.maxPerTenant) {
      const idle = [...own].find((one) => (this.#runningRequests.get(one) ?? 0) === 0);
      if (idle === undefined) throw tooManyConnections(own.size);
      this.#cut(idle);
    }
    own.add(socket);
    this.#byTenant.set(tenant, own);
    this.#tenantOf.set(socket, tenant);
  }

  [Symbol.dispose](): void {
    this.#server.off("connection", this.#add);
    this.#server.off("request", this.#countRequest);
  }

  readonly #add = (socket: Socket): void => {
    this.#strangers.add(socket);
    socket.once("close", () => this.#forget(socket));
    const { maxStrangers } = this.#limits;
    if (this.#strangers.size > 3 * maxStrangers) this.#cutOldest();
    else if (this.#strangers.size > maxStrangers && !this.#isCutPlanned) {
      this.#isCutPlanned = true;
      // Only after everything that these connections have already sent was read: two iterations of the event loop.
      setImmediate(() => setImmediate(this.#cutTooMany));
    }
  };

  readonly #cutTooMany = (): void => {
    this.#isCutPlanned = false;
    while (this.#strangers.size > this.#limits.maxStrangers) this.#cutOldest();
  };

  #cutOldest(): void {
    const [oldest] = this.#strangers;
    this.#cut(oldest!);
  }

  #cut(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
    this.#onCut();
  }

  #forget(socket: Socket): void {
    this.#strangers.delete(socket);
    const tenant = this.#tenantOf.get(socket);
    if (tenant === undefined) return;
    this.#tenantOf.delete(socket);
    const own = this.#byTenant.get(tenant)!;
    own.delete(socket);
    if (own.size === 0) this.#byTenant.delete(tenant);
  }

  readonly #countRequest = ({ socket }: { socket: Socket }, response: { once(event: "close", listener: () => void): unknown }): void => {
    const add = (count: number): unknown => this.#runningRequests.set(socket, (this.#runningRequests.get(socket) ?? 0) + count);
    add(1);
    response.once("close", () => add(-1));
  };
}

function tooManyConnections(max: number): HttpFailure {
  return new HttpFailure({
    code: "TOO_MANY_CALLS",
    message: `This client already has ${max} connections with running requests.`,
    retryAfterSeconds: 2,
  });
}
