import { expect, test } from "vitest";
import { canReplay } from "./can-replay.ts";

test.each([
  "df = pd.DataFrame(rows)\ndf['time'].max()",
  "np.random.seed(1)\nnp.random.rand(3)",
  "rng = np.random.default_rng(7)",
  "x = order_id",
])("%j can be run again", (code) => expect(canReplay(code)).toBe(true));

test.each([
  "import time\nt = time.time()",
  "from time import perf_counter as p\np()",
  "pd.Timestamp.now()",
  "pd.Timestamp('now')",
  "datetime.date.today()",
  "np.random.default_rng()",
  "import uuid\nuuid.uuid4()",
  "os.urandom(4)",
  "import threading",
])("%j cannot", (code) => expect(canReplay(code)).toBe(false));
