import { useCallback, useState } from "react";
import { tableFileEndings } from "../../../src/protocol/data-files.ts";
import { texts } from "../../texts.ts";
import { describeFailure } from "../api/api-error.ts";
import { server } from "../api/server.ts";

export interface Upload {
  readonly name: string;
  /** Null while the file is being uploaded. */
  readonly problem: { readonly title: string; readonly detail: string } | null;
}

/** Uploads files to a conversation, one after the other. */
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
          put({ name: file.name, problem: null });
          const problem = await uploadFile(conversationId, file, onDone);
          if (problem === null) dismiss(file.name);
          else put({ name: file.name, problem });
        }
      };
      void run();
    },
    [conversationId, onDone, put, dismiss],
  );
  return { uploads, add, dismiss };
}

/** Uploads a file. Returns the problem if it is refused, or saved but not readable as a table. */
async function uploadFile(conversationId: string, file: File, onDone: () => void): Promise<Upload["problem"]> {
  const title = texts.conversation.notUploaded(file.name);
  if (!tableFileEndings.some((ending) => file.name.toLowerCase().endsWith(ending)))
    return { title, detail: texts.conversation.wrongKind(tableFileEndings.join(", ")) };
  try {
    const { problem } = await server.upload(conversationId, file);
    onDone();
    return problem === undefined ? null : { title: texts.conversation.unreadable(file.name), detail: problem };
  } catch (error) {
    const { message, hint } = describeFailure(error);
    return { title, detail: hint === undefined ? message : `${message} ${hint}` };
  }
}
