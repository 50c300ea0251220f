import { App, applyDocumentTheme, applyHostStyleVariables } from "@modelcontextprotocol/ext-apps";
import { useEffect, useState } from "react";
import { texts } from "../texts.ts";
import { findCharts, type FoundChart } from "./find-charts.ts";

export type HostState =
  | { readonly state: "waiting" }
  | { readonly state: "ready"; readonly charts: readonly FoundChart[] }
  | { readonly state: "failed"; readonly reason: string };

/** Follows the host's messages. The app asks only for the result of the call that it was opened for. */
export function useHost(): HostState {
  const [state, setState] = useState<HostState>({ state: "waiting" });
  useEffect(() => {
    const app = new App({ name: "sluice-chart", version: "1.0.0" }, {}, { autoResize: true });
    app.ontoolresult = ({ structuredContent }) => setState({ state: "ready", charts: findCharts(structuredContent) });
    app.ontoolcancelled = () => setState({ state: "failed", reason: texts.app.cancelled });
    app.onhostcontextchanged = (context) => applyHostStyle(context);
    app.onteardown = () => ({});
    app.connect().then(
      () => applyHostStyle(app.getHostContext()),
      (error: unknown) => setState({ state: "failed", reason: texts.app.failed(error instanceof Error ? error.message : String(error)) }),
    );
    return () => void app.close();
  }, []);
  return state;
}

function applyHostStyle(context: ReturnType<App["getHostContext"]>): void {
  if (context?.theme) applyDocumentTheme(context.theme);
  if (context?.styles?.variables) applyHostStyleVariables(context.styles.variables);
}
