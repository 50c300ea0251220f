import type { ServerInfo } from "../../../src/protocol/http-operations.ts";
import { texts } from "../../texts.ts";
import { tableFileEndings } from "../../../src/protocol/data-files.ts";

interface WelcomeProps {
  readonly info: ServerInfo;
  onAsk(question: string): void;
  onAttach(): void;
}

/** The start of an empty conversation: sample questions and how to add data. */
export function Welcome({ info, onAsk, onAttach }: WelcomeProps) {
  const names = info.servers.map(({ name }) => name).join(", ");
  const isDemo = info.model === "demo";
  return (
    <section className="welcome">
      <h2>{texts.conversation.welcome}</h2>
      <p className="soft">{texts.conversation.welcomeMore}</p>
      {info.samples.length > 0 && info.model !== null && (
        <>
          <h3>{isDemo ? texts.conversation.demoOnly : texts.conversation.samples}</h3>
          <ul className="samples">
            {info.samples.map(({ title, question }) => (
              <li key={question}>
                <button type="button" onClick={() => onAsk(question)}>
                  <strong>{title}</strong>
                  <span>{question}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <button type="button" className="own-data" onClick={onAttach}>
        <strong>{texts.conversation.ownData}</strong>
        <span>{(isDemo ? texts.conversation.ownDataToSee : texts.conversation.ownDataMore)(tableFileEndings.join(", "))}</span>
      </button>
      <p className="soft">
        {info.model !== null && !isDemo && texts.conversation.model(info.model)} {names !== "" && texts.conversation.connected(names)}{" "}
        {info.driver === null ? texts.shell.noDriver : texts.shell.driver(info.driver)}.
      </p>
    </section>
  );
}
