import { useState } from "react";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";
import { server } from "../api/server.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { describeAlias } from "../describe-alias.ts";
import { formatCount } from "../format.ts";
import { RowsView } from "./rows-view.tsx";
import { SchemaView } from "./schema-view.tsx";
import { useLoaded } from "./use-loaded.ts";

interface DataBrowserProps {
  readonly conversationId: string;
  readonly alias: string;
  readonly facts: Alias | null;
}

/** Shows one alias: its columns, then its rows one page at a time. The rows stay on the server. */
export function DataBrowser({ conversationId, alias, facts }: DataBrowserProps) {
  const [schema, reload] = useLoaded((signal) => server.schema(conversationId, alias, signal), [conversationId, alias]);
  const [isSchemaOpen, setIsSchemaOpen] = useState(true);
  const hasTable = facts?.hasTable !== false;
  return (
    <section className="browser" aria-label={texts.data.title(alias)}>
      <h2>
        <code>{alias}</code> <span className="soft">{facts && describeAlias(facts)}</span>
      </h2>
      <p className="downloads">
        <span className="soft">{texts.panel.download}</span>
        {([...(hasTable ? (["csv", "parquet"] as const) : []), "json"] as const).map((ending) => (
          <a key={ending} className="button" href={server.tableUrl(conversationId, alias, ending)} download>
            {texts.panel.files[ending]}
          </a>
        ))}
      </p>
      {!hasTable && <p className="notice notice-info">{texts.data.noTable}</p>}
      {schema.state === "loading" && hasTable && <p role="status">{texts.conversation.loading}</p>}
      {schema.state === "failed" && hasTable && <FailureNotice error={schema.error} onAgain={reload} />}
      {schema.state === "ready" && (
        <>
          <details open={isSchemaOpen} onToggle={(event) => setIsSchemaOpen(event.currentTarget.open)}>
            <summary>
              {texts.data.schema} <span className="soft">{formatCount(schema.value.columns.length)}</span>
            </summary>
            <SchemaView schema={schema.value} />
          </details>
          {(schema.value.notes ?? []).map((note) => (
            <p key={note} className="notice notice-info">
              {note}
            </p>
          ))}
          <RowsView conversationId={conversationId} alias={alias} columns={schema.value.columns} />
        </>
      )}
    </section>
  );
}
