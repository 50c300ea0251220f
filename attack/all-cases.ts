import type { AttackCase } from "./attack-case.ts";
import { connectionFlood } from "./cases/connection-flood.ts";
import { forgedFrames } from "./cases/forged-frames.ts";
import { fullConversation } from "./cases/full-conversation.ts";
import { fuzzFrames } from "./cases/fuzz-frames.ts";
import { fuzzHttp } from "./cases/fuzz-http.ts";
import { fuzzMcp } from "./cases/fuzz-mcp.ts";
import { fuzzUploads } from "./cases/fuzz-uploads.ts";
import { greedyCells } from "./cases/greedy-cells.ts";
import { hostileAnswers } from "./cases/hostile-answers.ts";
import { hostileBackend } from "./cases/hostile-backend.ts";
import { hostileBodies } from "./cases/hostile-bodies.ts";
import { hostileUploads } from "./cases/hostile-uploads.ts";
import { largeCharts } from "./cases/large-charts.ts";
import { loginCrossSite } from "./cases/login-cross-site.ts";
import { pixelBombs } from "./cases/pixel-bombs.ts";
import { turnFlood } from "./cases/turn-flood.ts";

/** In the order in which they run. */
export const allCases: readonly AttackCase[] = [
  connectionFlood,
  forgedFrames,
  fullConversation,
  fuzzFrames,
  fuzzHttp,
  fuzzMcp,
  fuzzUploads,
  greedyCells,
  hostileAnswers,
  hostileBackend,
  hostileBodies,
  hostileUploads,
  largeCharts,
  loginCrossSite,
  pixelBombs,
  turnFlood,
];
