import { useCallback, useState } from "react";
import { texts } from "../../texts.ts";
import { describeFailure } from "../api/api-error.ts";
import { server } from "../api/server.ts";

export interface Upload {
  readonly name: string;
  readonly problem: string | null;
}

const kinds = /\.(?:csv|tsv|json|jsonl|parquet|xlsx)$/i;

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
          put({ name: file.name, problem: kinds.test(file.name) ? null : texts.conversation.wrongKind });
          if (!kinds.test(file.name)) continue;
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
