import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { ChatData } from "../../../src/protocol/http-chat.ts";
import { textOf, type ChatMessage } from "./chat-message.ts";
import type { CallView, TurnView } from "./turn-view.ts";

/** Builds the view of a turn from the parts of an assistant's message. */
export function toTurnView(message: ChatMessage, isStreaming: boolean): TurnView {
  const seen = createSeen();
  for (const part of message.parts) read(seen, part);
  const { start, result } = seen;
  return {
    turnId: message.metadata?.turnId ?? start?.turnId ?? message.id,
    conversationId: message.metadata?.conversationId ?? start?.conversationId ?? "",
    isRunning: isStreaming && result === null,
    startedAt: message.metadata?.createdAt ?? start?.at ?? null,
    plan: seen.plan,
    step: seen.step,
    // The answer is not a step of the timeline.
    calls: [...seen.calls.values()].filter(({ tool }) => tool !== "final_response"),
    artifacts: result?.artifacts ?? [...seen.artifacts.values()],
    answer: textOf(message),
    gaps: result?.gaps ?? seen.gaps,
    result,
  };
}

interface Seen {
  start: ChatData["turn-start"] | null;
  plan: TurnView["plan"];
  step: TurnView["step"];
  gaps: TurnView["gaps"];
  result: TurnView["result"];
  readonly calls: Map<string, CallView>;
  readonly artifacts: Map<string, ArtifactReference>;
}

function createSeen(): Seen {
  return { start: null, plan: null, step: null, gaps: [], result: null, calls: new Map(), artifacts: new Map() };
}

/** One handler per kind of event. Other parts are the answer's text or not ours. */
const readers: { readonly [Name in keyof ChatData]: (seen: Seen, data: ChatData[Name]) => void } = {
  "turn-start": (seen, data) => (seen.start = data),
  plan: (seen, { plan }) => (seen.plan = plan),
  "step-start": (seen, data) => (seen.step = data),
  "tool-start": ({ calls }, data) => calls.set(data.callId, toCall(data)),
  "cell-start": (seen, data) => updateCall(seen, data.callId, { cell: data }),
  "tool-progress": (seen, data) => updateCall(seen, data.callId, { progress: data }),
  "approval-request": (seen, data) => updateCall(seen, data.callId, { approval: data }),
  "approval-end": (seen, { callId, approvalId, answer }) => {
    const approval = seen.calls.get(callId)?.approval;
    if (approval?.approvalId === approvalId) updateCall(seen, callId, { approval: { ...approval, answer } });
  },
  "cell-output": ({ calls }, data) => calls.get(data.callId)?.output.push(data),
  "tool-end": (seen, data) => updateCall(seen, data.callId, { end: data }),
  artifact: ({ calls, artifacts }, { artifact, replaces }) => {
    for (const hash of replaces) artifacts.delete(hash);
    artifacts.set(artifact.contentHash, artifact);
    findDrawingCall(calls)?.artifacts.push(artifact.contentHash);
  },
  gaps: (seen, { gaps }) => (seen.gaps = gaps),
  "turn-end": (seen, { result }) => (seen.result = result),
};

function read(seen: Seen, part: ChatMessage["parts"][number]): void {
  if (!part.type.startsWith("data-") || !("data" in part)) return;
  const reader = readers[part.type.slice("data-".length) as keyof ChatData] as ((seen: Seen, data: unknown) => void) | undefined;
  reader?.(seen, part.data);
}

function toCall({
  callId,
  tool,
  step,
  at,
  server,
  intent,
  within,
  arguments: given,
  argumentsOmittedBytes,
}: ChatData["tool-start"]): CallView {
  return { callId, tool, step, startedAt: at, server, intent, within, arguments: given, argumentsOmittedBytes, output: [], artifacts: [] };
}

function updateCall({ calls }: Seen, callId: string, changes: Partial<CallView>): void {
  const call = calls.get(callId);
  if (call) Object.assign(call, changes);
}

/** Artifacts arrive while the call that drew them runs; such calls never overlap. */
function findDrawingCall(calls: ReadonlyMap<string, CallView>): CallView | undefined {
  const all = [...calls.values()];
  return all.find(({ tool, end }) => !end && ["code_interpreter", "python_code_edit", "render_chart"].includes(tool)) ?? all.at(-1);
}
