import { useEffect, useState } from "react";

/** A value once it has been the same for a while: nobody asks the server at every key. */
export function useDelayed<Value>(value: Value, ms: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
