import type { Configured } from "../configured/open-configured.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { HttpFailure } from "./http-failure.ts";
import type { ServedModel } from "./server-parts.ts";

export interface ServeModelOptions {
  readonly configured: Configured;
  readonly named: string | undefined;
  readonly isBundledSample: boolean;
}

/** The model, opened once. With the bundled sample and no model named, `demo` answers, which needs no key. Without any the server still serves MCP clients. */
export async function serveModel({ configured, named, isBundledSample }: ServeModelOptions): Promise<ServedModel> {
  const name = named ?? configured.configuration.model ?? (isBundledSample ? "demo" : null);
  try {
    const model = await configured.openModel(name);
    return { name, problem: null, open: async () => model };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const problem = `${error.message} ${error.hint ?? ""}`.trim();
    return { name: null, problem, open: () => Promise.reject(noModel(error)) };
  }
}

function noModel({ code, message, hint }: SluiceError): HttpFailure {
  return new HttpFailure({ status: 409, code, message, ...(hint === undefined ? {} : { hint }) });
}
