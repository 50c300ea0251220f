import { memo, useMemo } from "react";

/** Shows a value as indented JSON, as text. */
export const JsonView = memo(function JsonView({ value, label }: { value: unknown; label: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2), [value]);
  return (
    <pre className="json" role="region" aria-label={label} tabIndex={0}>
      {text}
    </pre>
  );
});
