import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openOrdinaryUser, type OrdinaryUser } from "./fixtures/ordinary-user.ts";

/** What an ordinary user gets who has only a clean home: real sandboxes of the drivers that need no root. */
describe("an ordinary user", () => {
  let user: OrdinaryUser;
  beforeAll(async () => {
    user = await openOrdinaryUser();
    await writeFile(path.join(user.home, "prices.json"), "[1, 2, 4]");
    await writeFile(
      path.join(user.home, "cell.py"),
      "fig, ax = plt.subplots()\nax.plot(prices)\nsave_figure('prices that rise')\nsum(prices)",
    );
  });
  afterAll(async () => {
    await user?.[Symbol.asyncDispose]();
  });

  test("gets gvisor-rootless from `auto`, which builds its own memory image and passes the self-test", async () => {
    const { stdout, stderr } = await user.run("bin/sluice", ["doctor"]);
    expect(stdout, stderr).toMatch(/^default: gvisor-rootless$/m);
    expect(stdout).toMatch(/^gvisor: not usable\n {2}why: The gvisor driver needs root, and this process is not root\.$/m);
    expect(stdout).toMatch(/^gvisor-rootless: usable/m);
    expect(stdout).toMatch(/^bubblewrap: usable/m);
    expect(stdout).not.toContain("FAILED");
    expect((await stat(path.join(user.home, ".cache/sluice/images"))).uid).toBe(user.uid);
  }, 240_000);

  test.each([
    ["auto", "gvisor-rootless", "restored"],
    ["gvisor-rootless", "gvisor-rootless", "restored"],
    ["bubblewrap", "bubblewrap", "forked"],
  ])("runs cells with --driver %s", async (wanted, driver, start) => {
    const out = `out-${wanted}`;
    const args = ["run", "cell.py", "--input", "prices=prices.json", "--json", "--driver", wanted, "--out", out];
    const { status, stdout, stderr } = await user.run("bin/sluice", args);
    expect(status, stderr).toBe(0);
    const outcome = JSON.parse(stdout) as { artifacts: { file: string }[] };
    expect(outcome).toMatchObject({ status: "ok", result: 7, sandbox: { driver, start } });
    expect(outcome.artifacts).toHaveLength(1);
  });

  test("keeps the driver contract on both drivers, and nothing gets out or stops its neighbours", async () => {
    const files = [
      ...["test/gvisor-contract.test.ts", "test/bubblewrap-contract.test.ts", "src/sandbox/drivers/bubblewrap/per-user-counters.test.ts"],
      ...["test/escape/kernel.test.ts", "test/escape/host.test.ts"],
    ];
    const options = ["run", "--root", "/tmp/clone", "--configLoader", "native", "--reporter=json", "--outputFile=/tmp/home/report.json"];
    const { status, stdout, stderr } = await user.run("node_modules/.bin/vitest", [...options, ...files]);
    const report = JSON.parse(await readFile(path.join(user.home, "report.json"), "utf8").catch(() => "{}")) as Report;
    const tests = report.testResults?.flatMap(({ assertionResults }) => assertionResults) ?? [];
    expect(tests.filter((one) => one.status !== "passed").map(({ fullName, failureMessages }) => [fullName, ...failureMessages])).toEqual(
      [],
    );
    expect(status, `${stdout}${stderr}`).toBe(0);
    expect(report.testResults).toHaveLength(files.length);
    for (const driver of ["gvisor-rootless", "bubblewrap"])
      expect(tests.filter(({ fullName }) => fullName.startsWith(`${driver} keeps the driver contract`)).length, driver).toBeGreaterThan(15);
  }, 600_000);

  test("leaves no process behind", async () => {
    await expect.poll(() => user.listProcesses(), { timeout: 20_000 }).toEqual([]);
  });
});

interface Report {
  readonly testResults?: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}
