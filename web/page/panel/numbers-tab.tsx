import { useMemo, useState } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import { DataTable } from "../../charts/data-table.tsx";
import { texts } from "../../texts.ts";
import { toNumberTables } from "./figure-rows.ts";

/** The numbers behind a picture, and what could not be read from it. */
export function NumbersTab({ artifact }: { artifact: ArtifactEnvelope }) {
  const tables = useMemo(() => toNumberTables(artifact), [artifact]);
  const [at, setAt] = useState(0);
  const table = tables[at];
  const unread = artifact.kind === "image" ? (artifact.figure?.axes ?? []).flatMap((axes) => axes.unread) : [];
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
