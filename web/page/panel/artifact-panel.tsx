import { useRef, useState, type KeyboardEvent } from "react";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";
import { artifactName } from "../answer/artifact-name.ts";
import { AliasTable } from "./alias-table.tsx";
import { ArtifactView } from "./artifact-view.tsx";
import { CodeTab } from "./code-tab.tsx";
import { Downloads } from "./downloads.tsx";
import { NumbersTab } from "./numbers-tab.tsx";
import type { PanelTarget } from "./panel-target.ts";
import { useTurnCells } from "./use-turn-cells.ts";

interface ArtifactPanelProps {
  readonly conversationId: string;
  readonly target: Extract<PanelTarget, { kind: "artifact" }>;
  readonly aliases: readonly Alias[];
  onData(alias: string): void;
  onChanged(): void;
}

const tabs = ["view", "numbers", "code", "data"] as const;

/** Panel of one artifact: view, numbers, code and data. */
export function ArtifactPanel({ conversationId, target, aliases, onData, onChanged }: ArtifactPanelProps) {
  const { artifact, all, turnId } = target;
  const [tab, setTab] = useState<(typeof tabs)[number]>("view");
  const view = useRef<HTMLDivElement>(null);
  const cells = useTurnCells(turnId, artifact.contentHash);
  const name = artifactName(artifact, all);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length] ?? "view";
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <>
      <h2>
        <span className="badge">{name}</span> {artifact.title ?? ""}
      </h2>
      <div className="tabs" role="tablist" aria-label={name} onKeyDown={move}>
        {tabs.map((one) => (
          <button
            key={one}
            type="button"
            role="tab"
            id={`tab-${one}`}
            aria-selected={tab === one}
            aria-controls="tab-body"
            tabIndex={tab === one ? 0 : -1}
            onClick={() => setTab(one)}
          >
            {texts.panel.tabs[one]}
          </button>
        ))}
      </div>
      <div id="tab-body" role="tabpanel" aria-labelledby={`tab-${tab}`} className="tab-body">
        <div ref={view} hidden={tab !== "view"}>
          <ArtifactView artifact={artifact} />
        </div>
        {tab === "numbers" && <NumbersTab artifact={artifact} />}
        {tab === "code" && <CodeTab {...cells} artifact={artifact} all={all} onChanged={onChanged} />}
        {tab === "data" && <AliasTable cell={cells.cell} turn={cells.turn} aliases={aliases} onOpen={onData} />}
      </div>
      <Downloads artifact={artifact} drawing={view} resultAlias={cells.cell?.resultAlias ?? null} conversationId={conversationId} />
    </>
  );
}
