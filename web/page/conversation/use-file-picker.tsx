import { useCallback, useRef, type ReactNode } from "react";
import { tableFileEndings } from "../../../src/protocol/data-files.ts";

/** Opens the file picker. The returned element is hidden and must be rendered. */
export function useFilePicker(onFiles: (files: readonly File[]) => void): { picker: ReactNode; open(): void } {
  const input = useRef<HTMLInputElement>(null);
  const picker = (
    <input
      ref={input}
      type="file"
      multiple
      hidden
      accept={tableFileEndings.join(",")}
      onChange={(event) => {
        onFiles([...(event.target.files ?? [])]);
        event.target.value = "";
      }}
    />
  );
  return { picker, open: useCallback(() => input.current?.click(), []) };
}
