import { lookUpError } from "../errors/error-table.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { packageVersion } from "../package-version.ts";
import { exitStatus } from "./exit-status.ts";
import { wrongUsage } from "./terminal.ts";

const usage = `sluice: sandboxed Python for AI agents

Use it:
  sluice run SCRIPT.py      run a Python script in a sandbox
  sluice ask "QUESTION"     answer a question with tools and sandboxed Python
  sluice serve              serve the chat page, the HTTP API and MCP
  sluice mcp                serve one MCP client on standard input and output

Set it up:
  sluice prepare            download and build what sandboxes need
  sluice doctor             test which sandbox drivers work on this machine
  sluice config             print the effective configuration and where each value comes from
  sluice snapshot           build, show or verify the file system that sandboxes start from
  sluice login-link         print a link that logs a browser in to the running server
  sluice prune              remove old conversations and unused files
  sluice quarantine         list or delete stored entries that could not be read

  sluice COMMAND --help     describe a command and its options
  sluice --version          print the version
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
  "login-link": async () =>
    await import("./commands/login-link.ts").then(({ loginLinkCommand: run, loginLinkUsage: usage }) => ({ run, usage })),
  prune: async () => await import("./commands/prune.ts").then(({ pruneCommand: run, pruneUsage: usage }) => ({ run, usage })),
  quarantine: async () =>
    await import("./commands/quarantine.ts").then(({ quarantineCommand: run, quarantineUsage: usage }) => ({ run, usage })),
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
    return printError(stop.signal.aborted ? stop.signal.reason : error, name);
  }
}

class Interrupted extends Error {
  constructor(signal: string) {
    super(`interrupted by ${signal}`);
  }
}

/** Prints the error that ended a command and returns the exit status. */
function printError(error: unknown, name: string): number {
  if (error instanceof Interrupted) {
    const effect = name === "run" ? "the cell was stopped and its sandbox removed" : "nothing incomplete was left behind";
    process.stderr.write(`sluice: interrupted; ${effect}.\n`);
    return exitStatus.interrupted;
  }
  if (!(error instanceof SluiceError)) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (code === "EPIPE") return exitStatus.pipeClosed;
    if (code.startsWith("ERR_PARSE_ARGS")) return printError(wrongUsage(name, (error as Error).message), name);
    process.stderr.write(`sluice: unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return exitStatus.failed;
  }
  process.stderr.write(`sluice: ${error.message}\n${error.hint ? `  ${error.hint}\n` : ""}`);
  return lookUpError(error.code).exit;
}

process.exitCode = await main(process.argv.slice(2));
