import { NoSandboxError, SluiceError, UsageError } from "../errors/sluice-error.ts";
import { askCommand, askUsage } from "./commands/ask.ts";
import { configCommand, configUsage } from "./commands/config.ts";
import { doctorCommand, doctorUsage } from "./commands/doctor.ts";
import { mcpCommand, mcpUsage } from "./commands/mcp.ts";
import { prepareCommand, prepareUsage } from "./commands/prepare.ts";
import { pruneCommand, pruneUsage } from "./commands/prune.ts";
import { runCommand, runUsage } from "./commands/run.ts";
import { serveCommand, serveUsage } from "./commands/serve.ts";
import { snapshotCommand, snapshotUsage } from "./commands/snapshot.ts";

const usage = `sluice: sandboxed Python for AI agents

  sluice run SCRIPT.py      run one cell in a sandbox (sluice run --help)
  sluice ask "QUESTION"     answer a question with tools and sandboxed Python (sluice ask --help)
  sluice mcp                serve an MCP client on standard input and output (sluice mcp --help)
  sluice serve              the chat page, the API and MCP over HTTP (sluice serve --help)
  sluice prune              remove conversations that are too old, or too much
  sluice config             the configuration as it takes effect, and where each value came from
  sluice doctor             which sandboxes work here, and what they were seen to enforce
  sluice snapshot           build, show or verify the Python root file system
  sluice prepare            bring what sandboxes need: gVisor, the snapshot, the memory image
`;

type Command = (args: string[], signal: AbortSignal) => Promise<number>;

const commands: Readonly<Record<string, { run: Command; usage: string }>> = {
  run: { run: runCommand, usage: runUsage },
  ask: { run: askCommand, usage: askUsage },
  mcp: { run: mcpCommand, usage: mcpUsage },
  serve: { run: serveCommand, usage: serveUsage },
  prune: { run: pruneCommand, usage: pruneUsage },
  config: { run: configCommand, usage: configUsage },
  doctor: { run: doctorCommand, usage: doctorUsage },
  snapshot: { run: snapshotCommand, usage: snapshotUsage },
  prepare: { run: prepareCommand, usage: prepareUsage },
};

/** Exit status: 0 ok, 1 a failed cell or check, 2 wrong usage, 3 no sandbox, 130 interrupted, 141 nobody reads the output any more. */
async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    (name === undefined ? process.stderr : process.stdout).write(usage);
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    process.stderr.write(`sluice: there is no command ${JSON.stringify(name)}.\n\n${usage}`);
    return 2;
  }
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(command.usage);
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort(new Interrupted(signal)));
  // `sluice run … | head` closes the pipe: then the cell is ended like at Ctrl-C, in silence.
  process.stdout.on("error", (error) => stop.abort(error));
  process.stderr.on("error", () => undefined);
  try {
    return await command.run(args, stop.signal);
  } catch (error) {
    // What was interrupted may have an error of its own to tell.
    return explain(stop.signal.aborted ? stop.signal.reason : error, name);
  }
}

class Interrupted extends Error {
  constructor(signal: string) {
    super(`interrupted by ${signal}`);
  }
}

/** The one printer of errors. */
function explain(error: unknown, command: string): number {
  if (error instanceof Interrupted) {
    const what = command === "run" ? "the cell was ended and nothing is left behind" : "nothing half-made is left behind";
    process.stderr.write(`sluice: interrupted; ${what}.\n`);
    return 130;
  }
  if (!(error instanceof SluiceError)) {
    if (error instanceof Error && "code" in error && error.code === "EPIPE") return 141;
    if (isParseArgsError(error)) {
      process.stderr.write(`sluice: ${error.message}\n\n${commands[command]?.usage ?? ""}`);
      return 2;
    }
    process.stderr.write(`sluice: unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return 1;
  }
  process.stderr.write(`sluice: ${error.message}\n${error.hint ? `  ${error.hint}\n` : ""}`);
  if (error instanceof UsageError) return 2;
  return error instanceof NoSandboxError ? 3 : 1;
}

function isParseArgsError(error: unknown): error is Error {
  return error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
}

process.exitCode = await main(process.argv.slice(2));
