import { useState } from "react";
import { texts } from "../../texts.ts";
import { formatBytes } from "../format.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { CallLine } from "./call-line.tsx";
import { CellOutput } from "./cell-output.tsx";
import { CopyButton } from "./copy-button.tsx";
import { JsonView } from "./json-view.tsx";
import { PythonCode } from "./python-code.tsx";
import type { CallView } from "./turn-view.ts";

interface CallCardProps {
  readonly call: CallView;
  readonly turnId: string;
  readonly isRunning: boolean;
}

/** One call in the timeline. It is open while it runs; afterwards the reader decides. */
export function CallCard({ call, turnId, isRunning }: CallCardProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const { cell, output, end, approval } = call;
  const code = cell?.code ?? scriptOf(call);
  const isActive = isRunning && end === undefined && (code !== null || output.length > 0); // the approval card shows the arguments itself
  const isOpen = chosen ?? isActive;
  return (
    <li className={call.within === undefined ? "call" : "call call-within"}>
      <details open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && setChosen(event.currentTarget.open)}>
        <summary>
          <CallLine call={call} isRunning={isRunning} />
        </summary>
        {isOpen && (
          <div className="call-body">
            {code === null && call.arguments !== undefined && <JsonView value={call.arguments} label={texts.turn.arguments} />}
            {call.argumentsOmittedBytes !== undefined && (
              <p className="soft">
                {texts.turn.arguments}: {texts.turn.omitted(formatBytes(call.argumentsOmittedBytes))}
              </p>
            )}
            {cell && (
              <p className="soft">
                {texts.turn.inputs}{" "}
                {cell.postProcessingContract.inputAliases.map((alias) => (
                  <code key={alias}>{alias}</code>
                ))}
                <CopyButton text={cell.code} />
              </p>
            )}
            {code !== null && <PythonCode code={code} />}
            {output.length > 0 && <CellOutput pieces={output} />}
            {end?.reason !== undefined && <p className="call-reason">{end.reason}</p>}
          </div>
        )}
      </details>
      {approval && <ApprovalCard turnId={turnId} approval={approval} isRunning={isRunning && end === undefined} />}
      {!isOpen && (end?.status === "error" || end?.status === "refused") && end.reason !== undefined && (
        <p className="call-reason">{end.reason}</p>
      )}
    </li>
  );
}

/** The code of an `execute` call is an argument. */
function scriptOf({ tool, arguments: given }: CallView): string | null {
  if (tool !== "execute" || typeof given !== "object" || given === null) return null;
  const { code } = given as { code?: unknown };
  return typeof code === "string" ? code : null;
}
