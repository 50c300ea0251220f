import { texts } from "../../texts.ts";
import type { Upload } from "./use-uploads.ts";

export function UploadList({ uploads, onDismiss }: { uploads: readonly Upload[]; onDismiss(name: string): void }) {
  return uploads.map(({ name, problem }) =>
    problem === null ? (
      <p key={name} role="status" className="soft">
        <span className="mark mark-running" aria-hidden /> {texts.conversation.uploading(name)}
      </p>
    ) : (
      <p key={name} role="alert" className="notice notice-major">
        <strong>{problem.title}.</strong> {problem.detail}{" "}
        <button type="button" className="quiet small" onClick={() => onDismiss(name)}>
          {texts.conversation.dismiss}
        </button>
      </p>
    ),
  );
}
