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
      const address = toWebAddress(href);
      if (address === null) return <bdi>{children}</bdi>;
      return (
        <>
          <a href={address} target="_blank" rel="noopener noreferrer nofollow">
            <bdi>{children}</bdi>
          </a>
          {showsAddress(children, address) ? null : <bdi className="soft"> ({address})</bdi>}
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

/** Where a link leads: in ASCII, and without a user name, which could look like a host. Null for an address that is not of the web or of mail. */
function toWebAddress(href: string): string | null {
  const url = URL.parse(href);
  if (url === null || !["https:", "http:", "mailto:"].includes(url.protocol)) return null;
  [url.username, url.password] = ["", ""];
  return url.href;
}

/** Whether the text of a link is its address. The server makes it so; answers of older versions may have other links. */
function showsAddress(children: ReactNode, address: string): boolean {
  return (
    typeof children === "string" &&
    [children, `http://${children}`, `mailto:${children}`].some((shown) => shown === address || `${shown}/` === address)
  );
}
