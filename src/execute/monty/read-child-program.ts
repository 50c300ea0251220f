import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * The text of `monty-process`, with the modules of `child/` in it as data: urls. The child runs without a compiler (`--jitless`: no memory that is
 * writable and executable), and so without the WebAssembly that Node needs to read TypeScript.
 */
export function readChildProgram(): Promise<string> {
  return readModule(join(import.meta.dirname, `monty-process${extname(import.meta.filename)}`));
}

async function readModule(path: string): Promise<string> {
  let text = extname(path) === ".ts" ? await stripTypes(path) : await readFile(path, "utf8");
  for (const [specifier, name = ""] of text.matchAll(/"(\.\/child\/[\w.-]+)"/g)) {
    const inner = await readModule(join(import.meta.dirname, name));
    text = text.replace(specifier, `"data:text/javascript;base64,${Buffer.from(inner).toString("base64")}"`);
  }
  return text;
}

/** Only where the sources themselves are run. In a process of its own, because this function of Node warns that it is new. */
async function stripTypes(path: string): Promise<string> {
  const program = `import { readFileSync } from "node:fs"; import { stripTypeScriptTypes } from "node:module";
    process.stdout.write(stripTypeScriptTypes(readFileSync(process.argv[1], "utf8")));`;
  const { stdout } = await run(process.execPath, ["--no-warnings", "--input-type=module", "--eval", program, path], { env: {} });
  return stdout;
}
