import { expect, test } from "vitest";
import { createToolPolicy } from "../tools/tool-policy.ts";
import { toToolPolicyOptions } from "./open-configured.ts";

test("the policy combines tools.allow with the allow list of each server", () => {
  const mcpServers = {
    ads: { command: "x", allow: ["delete_campaign", "pause"] },
    "my shop": { url: "http://h/", allow: ["*"] },
    plain: { command: "x" },
  };
  const options = toToolPolicyOptions({ mcpServers, tools: { allow: ["ads__pause", "reset"], toolPolicy: "annotations" } });
  expect(options).toEqual({ toolPolicy: "annotations", allow: ["ads__pause", "reset", "ads__delete_campaign", "my shop__*"] });
  expect(() => createToolPolicy(options)).not.toThrow();
});
