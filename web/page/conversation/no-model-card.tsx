import { noModelMessage, waysToConnect, worksWithoutModel } from "../../../src/protocol/connect-model.ts";
import { texts } from "../../texts.ts";
import { CopyButton } from "../turn/copy-button.tsx";

interface NoModelCardProps {
  /** Why no model can answer, as the server says it. */
  readonly problem: string;
  onDismiss?(): void;
}

/** Says that no model is connected, how to connect one, and what works without one. */
export function NoModelCard({ problem, onDismiss }: NoModelCardProps) {
  return (
    <section role="alert" className="no-model">
      <h2>{noModelMessage.replace(/\.$/, "")}</h2>
      <p>{problem.replace(noModelMessage, "").trim()}</p>
      <h3>{texts.conversation.connect}</h3>
      <p className="soft">{texts.conversation.connectMore}</p>
      {waysToConnect.map(({ title, lines }) => (
        <div key={title} className="no-model-way">
          <strong>{title}</strong>
          <CopyButton text={lines.join("\n")} />
          <pre tabIndex={0}>{lines.join("\n")}</pre>
        </div>
      ))}
      <h3>{texts.conversation.withoutModel}</h3>
      <ul>
        {worksWithoutModel.map((line) => (
          <li key={line}>{withCode(line)}</li>
        ))}
      </ul>
      {onDismiss && (
        <button type="button" onClick={onDismiss}>
          {texts.conversation.dismiss}
        </button>
      )}
    </section>
  );
}

/** Shows what is between backticks as code. */
function withCode(text: string) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
