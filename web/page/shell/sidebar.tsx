import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import { texts } from "../../texts.ts";
import { ConversationList } from "./conversation-list.tsx";
import { ThemeChoice } from "./theme-choice.tsx";
import type { useConversations } from "./use-conversations.ts";

interface SidebarProps {
  readonly info: ServerInfo;
  readonly conversations: ReturnType<typeof useConversations>;
  readonly current: string | null;
  go(path: string): void;
  onRemove(id: string): void;
}

export function Sidebar({ info, conversations, current, go, onRemove }: SidebarProps) {
  return (
    <nav className="sidebar" aria-label={texts.shell.conversations}>
      <div className="sidebar-head">
        <h1>{texts.shell.name}</h1>
        <span className="soft">{info.version}</span>
      </div>
      <button type="button" className="primary" onClick={() => go("/")}>
        {texts.shell.newConversation}
      </button>
      <input
        type="search"
        aria-label={texts.shell.search}
        placeholder={texts.shell.search}
        value={conversations.query}
        onChange={(event) => conversations.search(event.target.value)}
      />
      <div className="sidebar-list">
        <ConversationList
          list={conversations.list}
          current={current}
          isSearch={conversations.query !== ""}
          onOpen={(id) => go(`/c/${id}`)}
          onRemove={onRemove}
        />
        {conversations.next !== null && (
          <button type="button" className="quiet" onClick={conversations.more}>
            {texts.shell.more}
          </button>
        )}
      </div>
      <p className="tenant soft" title={texts.shell.tenant(info.tenant)}>
        {texts.shell.tenant(info.tenant)}
      </p>
      <div className="sidebar-foot">
        <ThemeChoice />
        {info.isOperator && (
          <a
            href="/ops"
            onClick={(event) => {
              event.preventDefault();
              go("/ops");
            }}
          >
            {texts.shell.operator}
          </a>
        )}
      </div>
    </nav>
  );
}
