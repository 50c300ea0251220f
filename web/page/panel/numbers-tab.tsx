import { useMemo, useState } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { DataTable } from "../../charts/data-table.tsx";
import { texts } from "../../texts.ts";
import { useArtifactData, type ArtifactData } from "../answer/use-artifact-data.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { toNumberTables } from "./figure-rows.ts";

/** The numbers behind a picture, and what could not be read from it. */
export function NumbersTab({ artifact }: { artifact: ArtifactReference }) {
  const loaded = useArtifactData(artifact);
  if (loaded.state === "failed") return <FailureNotice error={loaded.error} />;
  if (loaded.state === "loading") return <p role="status">{texts.conversation.loading}</p>;
  return <Numbers data={loaded.value} title={artifact.title} />;
}

function Numbers({ data, title }: { data: ArtifactData; title?: string | undefined }) {
  const tables = useMemo(() => toNumberTables(data, title), [data, title]);
  const [at, setAt] = useState(0);
  const table = tables[at];
  const unread = data.kind === "image" ? (data.figure?.axes ?? []).flatMap((axes) => axes.unread) : [];
  return (
    <>
      {tables.length > 1 && (
        <label className="row">
          <span className="visually-hidden">{texts.panel.tabs.numbers}</span>
          <select value={at} onChange={(event) => setAt(Number(event.target.value))}>
            {tables.map(({ title }, index) => (
              <option key={index} value={index}>
                {title}
              </option>
            ))}
          </select>
        </label>
      )}
      {table ? (
        <DataTable key={at} caption={table.title} columns={table.columns} rows={table.rows} />
      ) : (
        <p className="soft">{texts.panel.noNumbers}</p>
      )}
      {unread.length > 0 && (
        <p className="notice notice-info">
          <strong>{texts.panel.unread}:</strong> {unread.map(({ artist, reason }) => `${artist} (${reason})`).join("; ")}
        </p>
      )}
    </>
  );
}
