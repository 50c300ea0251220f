import { Component, type ReactNode } from "react";
import { texts } from "../texts.ts";

interface ChartBoundaryProps {
  readonly children: ReactNode;
}

/** Error boundary: a chart that cannot be drawn shows a message, and the rest of the page stays. */
export class ChartBoundary extends Component<ChartBoundaryProps, { readonly reason: string | null }> {
  override state: { readonly reason: string | null } = { reason: null };

  static getDerivedStateFromError(error: unknown): { reason: string } {
    return { reason: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    if (this.state.reason === null) return this.props.children;
    return (
      <p role="alert" className="chart-note">
        {texts.chart.broken}: {this.state.reason}
      </p>
    );
  }
}
