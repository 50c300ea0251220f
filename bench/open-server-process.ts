import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { keepTail } from "../src/processes.ts";

export interface ServerProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
  /** The token that the server generated; null when the configuration has tokens. */
  readonly token: string | null;
  /** Its configuration, its data in `data`, and its temporary files in `tmp`. Removed at the end. */
  readonly directory: string;
  /** Sends SIGTERM and waits for the end; after a minute, kills. Returns the exit code; null when it had to be killed. */
  stop(): Promise<number | null>;
}

export interface ServerProcessOptions {
  /** The content of sluice.config.json. */
  readonly configuration: object;
  /** Other files of the directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Gets what the server logs. Default: our stderr. */
  readonly onLog?: (text: string) => void;
}

const STOP_MS = 60_000;
const sluice = path.join(import.meta.dirname, "../bin/sluice");

/** Starts `sluice serve` on the loopback, with its own data directory. */
export async function openServerProcess({ configuration, files = {}, onLog }: ServerProcessOptions): Promise<ServerProcess> {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-"));
  const temporary = path.join(directory, "tmp"); // so that what it leaves behind can be seen
  mkdirSync(temporary);
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(directory, name), text);
  writeFileSync(path.join(directory, "sluice.config.json"), JSON.stringify(configuration));
  const child = spawn(sluice, ["serve", "--port", "0", "--log-level", onLog === undefined ? "error" : "info", "--log-format", "json"], {
    cwd: directory,
    env: { ...process.env, SLUICE_DATA: path.join(directory, "data"), SLUICE_MODEL: "", TMPDIR: temporary },
    stdio: ["ignore", "pipe", onLog === undefined ? "inherit" : "pipe"],
  });
  const readStderr = child.stderr === null ? () => "" : keepTail(child.stderr);
  child.stderr?.on("data", (text: string) => onLog?.(text));
  const exited = once(child, "exit") as Promise<[number | null]>;
  const stop = async (): Promise<number | null> => {
    child.kill("SIGTERM");
    const killing = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    return (await exited.finally(() => clearTimeout(killing)))[0];
  };
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    const place = await readAddress(child, readStderr);
    return {
      ...{ child, ...place, directory, stop },
      async [Symbol.asyncDispose]() {
        await stop();
        remove();
      },
    };
  } catch (error) {
    await stop();
    remove();
    throw error;
  }
}

async function readAddress(child: ChildProcess, readStderr: () => string): Promise<{ url: string; token: string | null }> {
  let text = "";
  return await new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the server exited: ${text}${readStderr()}`)));
    child.stdout!.on("data", (piece: Buffer) => {
      text += piece.toString();
      const url = /^address: (.*)$/m.exec(text)?.[1];
      const isComplete = /^For a desktop client/m.test(text);
      if (url !== undefined && isComplete) resolve({ url, token: /Bearer ([\w-]{43})$/m.exec(text)?.[1] ?? null });
    });
  });
}
