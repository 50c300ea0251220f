import type { ModelScript } from "./model-settings.ts";
import script from "./demo-script.json" with { type: "json" };

/** What the model `demo` says; a test runs every call of it against the bundled sample. */
export const demoScript: ModelScript = script;
