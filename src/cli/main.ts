import { lookUpError } from "../errors/error-table.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { packageVersion } from "../package-version.ts";
import { exitStatus } from "./exit-status.ts";

const usage = `sluice: sandboxed Python for AI agents

  sluice run SCRIPT.py      run one cell in a sandbox
  sluice ask "QUESTION"     answer a question with tools and sandboxed Python
  sluice mcp                serve an MCP client on standard input and output
  sluice serve              serve the chat page, the API and MCP over HTTP
  sluice prune              remove old conversations and unused files
  sluice config             print the effective configuration and the origin of each value
  sluice doctor             test which sandboxes work on this machine
  sluice snapshot           build, show or verify the Python root file system
  sluice prepare            download and build what sandboxes need
  sluice --version          print the version

sluice COMMAND --help describes a command.
`;

interface Command {
  readonly run: (args: string[], signal: AbortSignal) => Promise<number>;
  readonly usage: string;
}

/** Each command is loaded on demand: running a cell needs neither the server nor the AI SDK. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  run: async () => await import("./commands/run.ts").then(({ runCommand: run, runUsage: usage }) => ({ run, usage })),
  ask: async () => await import("./commands/ask.ts").then(({ askCommand: run, askUsage: usage }) => ({ run, usage })),
  mcp: async () => await import("./commands/mcp.ts").then(({ mcpCommand: run, mcpUsage: usage }) => ({ run, usage })),
  serve: async () => await import("./commands/serve.ts").then(({ serveCommand: run, serveUsage: usage }) => ({ run, usage })),
  prune: async () => await import("./commands/prune.ts").then(({ pruneCommand: run, pruneUsage: usage }) => ({ run, usage })),
  config: async () => await import("./commands/config.ts").then(({ configCommand: run, configUsage: usage }) => ({ run, usage })),
  doctor: async () => await import("./commands/doctor.ts").then(({ doctorCommand: run, doctorUsage: usage }) => ({ run, usage })),
  snapshot: async () => await import("./commands/snapshot.ts").then(({ snapshotCommand: run, snapshotUsage: usage }) => ({ run, usage })),
  prepare: async () => await import("./commands/prepare.ts").then(({ prepareCommand: run, prepareUsage: usage }) => ({ run, usage })),
};

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    (name === undefined ? process.stderr : process.stdout).write(usage);
    return name === undefined ? exitStatus.wrongUsage : exitStatus.ok;
  }
  if (name === "--version") {
    process.stdout.write(`${packageVersion}\n`);
    return exitStatus.ok;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) {
    process.stderr.write(`sluice: unknown command ${JSON.stringify(name)}.\n\n${usage}`);
    return exitStatus.wrongUsage;
  }
  const command = await load();
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(command.usage);
    return exitStatus.ok;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort(new Interrupted(signal)));
  // `sluice run … | head` closes the pipe. Stop like on Ctrl-C, but without a message.
  process.stdout.on("error", (error) => stop.abort(error));
  process.stderr.on("error", () => undefined);
  try {
    return await command.run(args, stop.signal);
  } catch (error) {
    // After an interruption, report the interruption and not an error that it caused.
    return printError(stop.signal.aborted ? stop.signal.reason : error, { name, usage: command.usage });
  }
}

class Interrupted extends Error {
  constructor(signal: string) {
    super(`interrupted by ${signal}`);
  }
}

/** Prints the error that ended a command and returns the exit status. */
function printError(error: unknown, { name, usage }: { name: string; usage: string }): number {
  if (error instanceof Interrupted) {
    const effect = name === "run" ? "the cell was stopped and its sandbox removed" : "nothing incomplete was left behind";
    process.stderr.write(`sluice: interrupted; ${effect}.\n`);
    return exitStatus.interrupted;
  }
  if (!(error instanceof SluiceError)) {
    if (error instanceof Error && "code" in error && error.code === "EPIPE") return exitStatus.pipeClosed;
    if (isParseArgsError(error)) {
      process.stderr.write(`sluice: ${error.message}\n\n${usage}`);
      return exitStatus.wrongUsage;
    }
    process.stderr.write(`sluice: unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitStatus.failed;
  }
  process.stderr.write(`sluice: ${error.message}\n${error.hint ? `  ${error.hint}\n` : ""}`);
  return lookUpError(error.code).exit;
}

function isParseArgsError(error: unknown): error is Error {
  return error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
}

process.exitCode = await main(process.argv.slice(2));
