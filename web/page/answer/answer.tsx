import { memo, type ReactNode, useMemo } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";
import { ArtifactInline } from "./artifact-inline.tsx";
import { artifactName } from "./artifact-name.ts";
import { findMentions, placeArtifacts } from "./place-artifacts.ts";

interface AnswerProps {
  readonly text: string;
  readonly artifacts: readonly ArtifactReference[];
  onOpen(artifact: ArtifactReference): void;
}

/**
 * Renders the answer as Markdown, with each artifact where the text first names it and the others at the end. The text is not trusted: HTML stays text,
 * pictures come only from the artifact store, and links lead only to the web and show where.
 */
export const Answer = memo(function Answer({ text, artifacts, onOpen }: AnswerProps) {
  const names = artifacts.map((artifact) => artifactName(artifact, artifacts));
  const mentions = findMentions(text, names);
  const named = new Set(mentions.map(({ index }) => index));
  const components = useMemo(() => toComponents(artifacts, onOpen), [artifacts, onOpen]);
  return (
    <div className="answer">
      <Markdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[[placeArtifacts, mentions]]}
        components={components}
        urlTransform={(url) => url}
      >
        {text}
      </Markdown>
      {artifacts.map((artifact, index) =>
        named.has(index) ? null : <ArtifactInline key={artifact.contentHash} artifact={artifact} all={artifacts} onOpen={onOpen} />,
      )}
    </div>
  );
});

function toComponents(artifacts: readonly ArtifactReference[], onOpen: (artifact: ArtifactReference) => void): Components {
  return {
    a: ({ href = "", children }) => {
      const host = webHost(href);
      if (host === null) return <span>{children}</span>;
      return (
        <>
          <a href={href} target="_blank" rel="noopener noreferrer nofollow">
            {children}
          </a>
          {showsAddress(children, href) ? null : <span className="soft"> ({host})</span>}
        </>
      );
    },
    img: ({ alt = "" }) => <span className="soft">{texts.turn.remoteImage(alt)}</span>,
    table: ({ children }) => (
      <div className="answer-table" role="region" aria-label={texts.chart.showTable} tabIndex={0}>
        <table>{children}</table>
      </div>
    ),
    pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
    "artifact-place": ({ index }: { index?: unknown }) => {
      const artifact = artifacts[Number(index)];
      return artifact ? <ArtifactInline artifact={artifact} all={artifacts} onOpen={onOpen} /> : null;
    },
  } as Components;
}

/** The host that a link leads to; null for an address that is not of the web or of mail. */
function webHost(href: string): string | null {
  const url = URL.parse(href);
  if (url === null || !["https:", "http:", "mailto:"].includes(url.protocol)) return null;
  return url.protocol === "mailto:" ? url.pathname : url.host;
}

/** Whether the text of a link is its address. The server makes it so; answers of older versions may have other links. */
function showsAddress(children: ReactNode, href: string): boolean {
  const url = URL.parse(href);
  const isAscii = /^[!-~]*$/.test(href.split(/[/?#]/, 3).join("/"));
  return (
    typeof children === "string" && [children, `http://${children}`, `mailto:${children}`].includes(href) && isAscii && url?.username === ""
  );
}
