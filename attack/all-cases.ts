import type { AttackCase } from "./attack-case.ts";
import { forgedFrames } from "./cases/forged-frames.ts";
import { greedyCells } from "./cases/greedy-cells.ts";
import { largeCharts } from "./cases/large-charts.ts";
import { loginCrossSite } from "./cases/login-cross-site.ts";
import { pixelBombs } from "./cases/pixel-bombs.ts";

/** In the order in which they run. */
export const allCases: readonly AttackCase[] = [forgedFrames, greedyCells, largeCharts, loginCrossSite, pixelBombs];
