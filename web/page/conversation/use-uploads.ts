import { useCallback, useState } from "react";
import { texts } from "../../texts.ts";
import { describeFailure } from "../api/api-error.ts";
import { server } from "../api/server.ts";
import { dataKinds, isDataFile } from "./data-kinds.ts";

export interface Upload {
  readonly name: string;
  readonly problem: string | null;
}

/** Files that become aliases of a conversation, one after the other. */
export function useUploads(
  conversationId: string,
  onDone: () => void,
): { uploads: readonly Upload[]; add(files: readonly File[]): void; dismiss(name: string): void } {
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const put = useCallback((upload: Upload) => setUploads((all) => [...all.filter(({ name }) => name !== upload.name), upload]), []);
  const dismiss = useCallback((name: string) => setUploads((all) => all.filter((one) => one.name !== name)), []);
  const add = useCallback(
    (files: readonly File[]) => {
      const run = async (): Promise<void> => {
        for (const file of files) {
          const isReadable = isDataFile(file.name);
          put({ name: file.name, problem: isReadable ? null : texts.conversation.wrongKind(dataKinds.join(", ")) });
          if (!isReadable) continue;
          try {
            await server.upload(conversationId, file);
            dismiss(file.name);
            onDone();
          } catch (error) {
            const { message, hint } = describeFailure(error);
            put({ name: file.name, problem: hint === undefined ? message : `${message} ${hint}` });
          }
        }
      };
      void run();
    },
    [conversationId, onDone, put, dismiss],
  );
  return { uploads, add, dismiss };
}
