import { useEffect, useRef } from "react";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";
import { DataBrowser } from "../data/data-browser.tsx";
import { ArtifactPanel } from "./artifact-panel.tsx";
import type { PanelTarget } from "./panel-target.ts";

interface PanelProps {
  readonly conversationId: string;
  readonly target: PanelTarget;
  readonly aliases: readonly Alias[];
  onTarget(target: PanelTarget | null): void;
  onChanged(): void;
}

/** The panel beside the conversation, or over it on small screens. Escape closes it. */
export function Panel({ conversationId, target, aliases, onTarget, onChanged }: PanelProps) {
  const box = useRef<HTMLElement>(null);
  const opener = useRef<Element | null>(null);
  const before = useRef<PanelTarget | null>(null);
  useEffect(() => {
    opener.current ??= document.activeElement;
    box.current?.focus();
    return () => {
      if (opener.current instanceof HTMLElement) opener.current.focus();
    };
  }, []);
  const openData = (alias: string): void => {
    before.current = target;
    onTarget({ kind: "data", alias });
  };
  const back = before.current;
  return (
    <aside
      ref={box}
      className="panel"
      aria-label={texts.panel.title}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape" && !event.defaultPrevented) onTarget(null);
      }}
    >
      <button type="button" className="quiet panel-close" onClick={() => onTarget(null)}>
        {texts.panel.close}
      </button>
      {target.kind === "artifact" ? (
        <ArtifactPanel
          key={target.artifact.contentHash}
          conversationId={conversationId}
          target={target}
          aliases={aliases}
          onData={openData}
          onChanged={onChanged}
        />
      ) : (
        <>
          {back?.kind === "artifact" && (
            <button type="button" className="quiet" onClick={() => onTarget(back)}>
              ← {texts.panel.back}
            </button>
          )}
          <DataBrowser
            key={target.alias}
            conversationId={conversationId}
            alias={target.alias}
            facts={aliases.find(({ alias }) => alias === target.alias) ?? null}
          />
        </>
      )}
    </aside>
  );
}
