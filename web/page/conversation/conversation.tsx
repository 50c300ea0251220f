import { useChat, type Chat } from "@ai-sdk/react";
import { useCallback, useEffect, useRef, useState } from "react";
import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import type { Alias } from "../../../src/protocol/http-tables.ts";
import { texts } from "../../texts.ts";
import { ApiError } from "../api/api-error.ts";
import { server } from "../api/server.ts";
import type { PanelTarget } from "../panel/panel-target.ts";
import type { ChatMessage } from "../turn/chat-message.ts";
import { textOf } from "../turn/chat-message.ts";
import { TurnBlock } from "../turn/turn-block.tsx";
import { AliasChips } from "./alias-chips.tsx";
import { Composer } from "./composer.tsx";
import { nameQuestions } from "./create-chat.ts";
import { FailureNotice } from "./failure-notice.tsx";
import { NoModelCard } from "./no-model-card.tsx";
import { Question } from "./question.tsx";
import { UploadList } from "./upload-list.tsx";
import { useDrop } from "./use-drop.ts";
import { useFilePicker } from "./use-file-picker.tsx";
import { useFollow } from "./use-follow.ts";
import { useUploads } from "./use-uploads.ts";
import { Welcome } from "./welcome.tsx";

interface ConversationProps {
  readonly chat: Chat<ChatMessage>;
  readonly info: ServerInfo;
  readonly aliases: readonly Alias[];
  onAsked(): void;
  /** Called when the server has accepted the question. */
  onStarted(): void;
  onEnded(): void;
  onUploaded(): void;
  onOpen(target: PanelTarget): void;
}

/** The turns of one conversation and the input for the next question. */
export function Conversation({ chat, info, aliases, onAsked, onStarted, onEnded, onUploaded, onOpen }: ConversationProps) {
  const { messages, sendMessage, regenerate, resumeStream, setMessages, clearError, status, error } = useChat<ChatMessage>({
    chat,
    resume: true,
    throttle: 60,
  });
  const [isStopping, setIsStopping] = useState(false);
  const isRunning = status === "submitted" || status === "streaming";
  const { uploads, add, dismiss } = useUploads(chat.id, onUploaded);
  const isDragging = useDrop(add);
  const { picker, open: attach } = useFilePicker(add);
  const list = useRef<HTMLDivElement>(null);
  const { isBehind, jump } = useFollow(list, messages, isRunning);
  const last = messages.at(-1);
  const isEmpty = messages.length === 0;

  useEffect(() => {
    if (isRunning || isEmpty) return;
    setIsStopping(false);
    setMessages(nameQuestions);
    onEnded();
  }, [isRunning, isEmpty, setMessages, onEnded]);

  useEffect(() => {
    if (status === "streaming") onStarted();
  }, [status, onStarted]);

  const ask = useCallback(
    (text: string, messageId?: string) => {
      void sendMessage({ text, ...(messageId === undefined ? {} : { messageId }) });
      onAsked();
    },
    [sendMessage, onAsked],
  );
  const stop = (): void => {
    const turnId = last?.role === "assistant" ? last.metadata?.turnId : undefined;
    if (turnId === undefined) return;
    setIsStopping(true);
    server.stop(turnId).catch(() => setIsStopping(false));
  };
  const retry = useCallback((messageId: string) => void regenerate({ messageId }), [regenerate]);
  const open = useCallback<Parameters<typeof TurnBlock>[0]["onOpen"]>(
    (turnId, artifact, all) => onOpen({ kind: "artifact", turnId, artifact, all }),
    [onOpen],
  );
  const isWithoutModel = error instanceof ApiError && error.code === "MODEL_MISSING";
  /** Shows what the server has recorded, which is without the question that nothing could answer. */
  const takeBack = (): void => {
    clearError();
    server.conversation(chat.id).then(
      (recorded) => setMessages(nameQuestions(recorded.messages as unknown as ChatMessage[])),
      () => setMessages([]),
    );
  };
  const again = (): void => {
    clearError();
    if (error instanceof ApiError) void regenerate();
    else void resumeStream();
  };

  return (
    <div className={isDragging ? "conversation is-over" : "conversation"}>
      <div className="conversation-list" ref={list} role="log" aria-label={texts.conversation.title} aria-busy={isRunning} tabIndex={0}>
        {messages.length === 0 && !isRunning && <Welcome info={info} onAsk={ask} onAttach={attach} />}
        {messages.map((message, index) =>
          // A question's id changes when its turn ends, so its position identifies it, and its id is read when it is needed.
          message.role === "user" ? (
            <Question key={index} text={textOf(message)} canEdit={!isRunning} onEdit={(text) => ask(text, chat.messages[index]?.id)} />
          ) : (
            <TurnBlock
              key={message.id}
              message={message}
              isStreaming={isRunning && message === last}
              canRetry={!isRunning && message === last}
              onOpen={open}
              onRetry={retry}
            />
          ),
        )}
        {status === "submitted" && last?.role === "user" && (
          <p className="timeline-line" role="status">
            <span className="mark mark-running" aria-hidden /> {texts.turn.thinking}
          </p>
        )}
        {error && !isWithoutModel && <FailureNotice error={error} onAgain={again} onDismiss={clearError} />}
        {isWithoutModel && <NoModelCard problem={error.message} onDismiss={takeBack} />}
        {info.model === null && <NoModelCard problem={info.modelProblem ?? ""} />}
      </div>
      {isBehind && isRunning && (
        <button type="button" className="jump" onClick={jump}>
          ↓ {texts.conversation.jump}
        </button>
      )}
      <div className="conversation-foot">
        {picker}
        <UploadList uploads={uploads} onDismiss={dismiss} />
        <AliasChips aliases={aliases} onOpen={(alias) => onOpen({ kind: "data", alias })} />
        <Composer
          isRunning={isRunning}
          isStopping={isStopping}
          isDisabled={info.model === null}
          maxCharacters={info.limits.questionCharacters}
          onAsk={ask}
          onStop={stop}
          onAttach={attach}
        />
      </div>
      {isDragging && <div className="drop">{texts.conversation.drop}</div>}
    </div>
  );
}
