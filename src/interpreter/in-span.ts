import { SpanStatusCode, trace } from "@opentelemetry/api";

type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface Span {
  set(attributes: Attributes): void;
  fail(message: string): void;
}

/** Runs `work` in an OpenTelemetry span. Does nothing more if no provider is registered. */
export async function inSpan<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>): Promise<T> {
  return await trace.getTracer("sluice").startActiveSpan(name, { attributes }, async (span) => {
    const fail = (message: string): void => void span.setStatus({ code: SpanStatusCode.ERROR, message });
    try {
      return await work({ set: (more) => void span.setAttributes(more), fail });
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
      throw error;
    } finally {
      span.end();
    }
  });
}
