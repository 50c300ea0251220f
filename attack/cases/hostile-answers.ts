import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { cell } from "../hostile-tenant.ts";

/** Texts on which naive Markdown or expressions take quadratic or exponential time. */
const bombs = ["[\n", "![", "[](", "[a](<", "*_", "> ", "`", "[^1]: ", "<a ", "\\[", "|-", "- [ ] ", "http://a.", "Figure 1 "].map((unit) =>
  unit.repeat(Math.floor(60_000 / unit.length)),
);

export const hostileAnswers: AttackCase = {
  name: "hostile-answers",
  what: "alt texts, titles, results and answers that repeat what Markdown readers and expressions stumble over",
  async run({ hostile, isShort }) {
    for (const bomb of isShort ? bombs.slice(0, 4) : bombs) {
      const text = JSON.stringify(bomb);
      const code = `
text = ${text}
plt.plot([1, 2, 3])
try: save_figure(text[:2_000], title=text[:200])
except Exception as error: save_figure("A line that rises over time")
print(text)
set_result({"text": text, text[:200]: 1})
`;
      const { document } = await hostile.turn([cell(code, ["image"])], { answer: bomb });
      assert.equal(document.result?.outcome.stopReason, "complete_answer");
      assert.ok(document.result.answer.length < 1_000_000);
    }
  },
};
