import { useCallback } from "react";
import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import { texts } from "../../texts.ts";
import { Conversation } from "../conversation/conversation.tsx";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { useConversation } from "../conversation/use-conversation.ts";
import type { PanelTarget } from "../panel/panel-target.ts";
import { Panel } from "../panel/panel.tsx";

interface ConversationLoaderProps {
  readonly id: string;
  readonly isNew: boolean;
  readonly info: ServerInfo;
  readonly target: PanelTarget | null;
  onTarget(target: PanelTarget | null): void;
  onAsked(): void;
  onChanged(): void;
}

export function ConversationLoader({ id, isNew, info, target, onTarget, onAsked, onChanged }: ConversationLoaderProps) {
  const { loaded, refreshAliases } = useConversation(id, isNew, onChanged);
  const onUploaded = useCallback(() => {
    onAsked();
    onChanged();
    refreshAliases();
  }, [onAsked, onChanged, refreshAliases]);
  return (
    <>
      <main id="conversation" className="main" tabIndex={-1}>
        {loaded.state === "loading" && (
          <p className="soft" role="status">
            {texts.conversation.loading}
          </p>
        )}
        {loaded.state === "failed" && <FailureNotice error={loaded.error} onAgain={() => location.reload()} />}
        {loaded.state === "ready" && (
          <Conversation
            chat={loaded.chat}
            info={info}
            aliases={loaded.aliases}
            onAsked={onAsked}
            onStarted={onChanged}
            onEnded={refreshAliases}
            onUploaded={onUploaded}
            onOpen={onTarget}
          />
        )}
      </main>
      {target && (
        <Panel
          conversationId={id}
          target={target}
          aliases={loaded.state === "ready" ? loaded.aliases : []}
          onTarget={onTarget}
          onChanged={refreshAliases}
        />
      )}
    </>
  );
}
