import { describe, expect, it } from "vitest";
import type { LoadedConfiguration } from "./load-configuration.ts";
import { hideSecrets } from "./hide-secrets.ts";

function shown(configuration: object, origins: LoadedConfiguration["origins"] = {}): unknown {
  return hideSecrets({ configuration, origins, path: null } as unknown as LoadedConfiguration);
}

describe("hideSecrets", () => {
  it("hides headers, environment variables, API keys, token hashes and identity values, and nothing else", () => {
    expect(
      shown({
        mcpServers: {
          env: { command: "c", env: { A: "s", B: "t" } },
          headers: { url: "https://h/p", headers: { Authorization: "s" }, allow: ["x"] },
        },
        models: { openai: { apiKey: "s", headers: { X: "s" }, organization: "o" } },
        auth: { tokens: [{ tenant: "t", sha256: "s" }] },
        session: { identities: { choices: { value: { value: "s", description: "d" } } } },
        limits: { sandbox: { openFiles: 5 } },
      }),
    ).toEqual({
      mcpServers: {
        env: { command: "c", env: { A: "(hidden)", B: "(hidden)" } },
        headers: { url: "https://h/p", headers: { Authorization: "(hidden)" }, allow: ["x"] },
      },
      models: { openai: { apiKey: "(hidden)", headers: { X: "(hidden)" }, organization: "o" } },
      auth: { tokens: [{ tenant: "t", sha256: "(hidden)" }] },
      session: { identities: { choices: { value: { value: "(hidden)", description: "d" } } } },
      limits: { sandbox: { openFiles: 5 } },
    });
  });

  it("shows strings with references unexpanded, unless their path is secret", () => {
    const reference = { from: "environment", variables: ["A"], written: "--key=${A}" } as const;
    const origins = {
      "mcpServers.x.args[0]": reference,
      "mcpServers.x.env.A": reference,
      model: { from: "environment", variables: ["SLUICE_MODEL"] } as const,
    };
    expect(shown({ model: "demo", mcpServers: { x: { args: ["--key=s"], env: { A: "s" } } } }, origins)).toEqual({
      model: "demo",
      mcpServers: { x: { args: ["--key=${A}"], env: { A: "(hidden)" } } },
    });
  });

  it("removes credentials from URLs and arguments", () => {
    const args = [
      "--port",
      "80",
      "--api-key",
      "s",
      "--token=s",
      "token=s",
      "--name=n",
      "--password",
      "--verbose",
      "sk-aaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    expect(
      shown({ mcpServers: { x: { args }, y: { url: "https://me:s@h/p?key=s&n=1" } }, models: { gateway: { baseUrl: "https://h/?k=s" } } }),
    ).toEqual({
      mcpServers: {
        x: {
          args: [
            "--port",
            "80",
            "--api-key",
            "(hidden)",
            "--token=(hidden)",
            "token=(hidden)",
            "--name=n",
            "--password",
            "--verbose",
            "[removed]",
          ],
        },
        y: { url: "https://hidden:hidden@h/p?key=hidden&n=hidden" },
      },
      models: { gateway: { baseUrl: "https://h/?k=hidden" } },
    });
  });
});
