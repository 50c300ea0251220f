import { useEffect, useState } from "react";

/** Debounces a value, so that the server is not asked at every key press. */
export function useDelayed<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
