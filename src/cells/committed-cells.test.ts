import { expect, test } from "vitest";
import { looksDeterministic } from "./committed-cells.ts";

test.each([
  "df = pd.DataFrame(rows)\ndf['time'].max()",
  "np.random.seed(1)\nnp.random.rand(3)",
  "rng = np.random.default_rng(7)",
  "x = order_id",
  "df.eval('a + b')",
  "df.index.is_monotonic_increasing",
  "import pandas as pd\nhours = df.time",
])("%j looks deterministic", (code) => expect(looksDeterministic(code)).toBe(true));

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
  "import datetime, time\ntime.perf_counter_ns()",
  "from time import (\n    time_ns as t)\nt()",
  "import os\nos.times()",
  "import os\nos.listdir('.')",
  "from pathlib import Path\n[p.stat().st_mtime for p in Path('.').iterdir()]",
  "open('/proc/self/stat').read()",
  "open('/dev/urandom', 'rb').read(4)",
  "exec(source)",
  "__import__('ti' + 'me').time",
])("%j does not look deterministic", (code) => expect(looksDeterministic(code)).toBe(false));
