import { SpanStatusCode, trace } from "@opentelemetry/api";

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Runs work in an OpenTelemetry span when a provider is registered. Without one the API's spans do nothing. */
export async function inSpan<T>(
  name: string,
  attributes: Attributes,
  work: (span: { set(more: Attributes): void }) => Promise<T>,
): Promise<T> {
  return await trace.getTracer("sluice").startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work({ set: (more) => void span.setAttributes(more) });
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}
