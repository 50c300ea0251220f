import { expect, test } from "vitest";
import { createToolPolicy } from "../tools/tool-policy.ts";
import { toolPolicyOf } from "./tool-policy-of.ts";

test("the policy allows what the list and the entries of servers allow", () => {
  const mcpServers = {
    ads: { command: "x", allow: ["delete_campaign", "pause"] },
    "my shop": { url: "http://h/", allow: ["*"] },
    plain: { command: "x" },
  };
  const options = toolPolicyOf({ mcpServers, tools: { allow: ["ads__pause", "reset"], toolPolicy: "annotations" } });
  expect(options).toEqual({ toolPolicy: "annotations", allow: ["ads__pause", "reset", "ads__delete_campaign", "my shop__*"] });
  expect(() => createToolPolicy(options)).not.toThrow();
});
