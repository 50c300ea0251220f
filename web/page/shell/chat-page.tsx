import { useCallback, useEffect, useState } from "react";
import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import { texts } from "../../texts.ts";
import type { PanelTarget } from "../panel/panel-target.ts";
import { ConversationLoader } from "./conversation-loader.tsx";
import { Sidebar } from "./sidebar.tsx";
import { useConversations } from "./use-conversations.ts";

interface ChatPageProps {
  readonly info: ServerInfo;
  readonly conversationId: string | null;
  go(path: string): void;
}

/** Layout: conversations on the left, the current one in the middle, the panel on the right. */
export function ChatPage({ info, conversationId, go }: ChatPageProps) {
  const conversations = useConversations();
  const [draftId, setDraftId] = useState(newId);
  const [isMenuOpen, setIsMenuOpen] = useState(false);
  const [target, setTarget] = useState<PanelTarget | null>(null);
  const id = conversationId ?? draftId;
  const { refresh } = conversations;

  const leave = useCallback(
    (path: string) => {
      if (path === "/") setDraftId(newId());
      setIsMenuOpen(false);
      setTarget(null);
      go(path);
    },
    [go],
  );
  const asked = useCallback(() => go(`/c/${id}`), [go, id]);
  useEffect(() => {
    const title = conversations.list.find((one) => one.id === id)?.title;
    document.title = title === undefined ? texts.shell.name : `${title} · ${texts.shell.name}`;
  }, [conversations.list, id]);
  const remove = (removedId: string): void => {
    conversations.remove(removedId).then(
      () => removedId === id && leave("/"),
      () => refresh(),
    );
  };

  return (
    <div className={["page", isMenuOpen ? "has-menu" : "", target ? "has-panel" : ""].join(" ")}>
      <a className="skip" href="#conversation">
        {texts.shell.skip}
      </a>
      <header className="bar">
        <button type="button" className="quiet" aria-expanded={isMenuOpen} onClick={() => setIsMenuOpen(!isMenuOpen)}>
          ☰ <span className="visually-hidden">{isMenuOpen ? texts.shell.closeMenu : texts.shell.menu}</span>
        </button>
        <strong>{texts.shell.name}</strong>
        <button type="button" className="quiet" onClick={() => leave("/")}>
          {texts.shell.newConversation}
        </button>
      </header>
      <Sidebar info={info} conversations={conversations} current={conversationId} go={leave} onRemove={remove} />
      <ConversationLoader
        key={id}
        id={id}
        isNew={id === draftId}
        info={info}
        target={target}
        onTarget={setTarget}
        onAsked={asked}
        onChanged={refresh}
      />
    </div>
  );
}

function newId(): string {
  return `c_${crypto.randomUUID().replaceAll("-", "")}`;
}
