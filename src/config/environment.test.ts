import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cacheDirectory } from "./environment.ts";

describe("cacheDirectory", () => {
  it("is SLUICE_CACHE as an absolute path", () => {
    expect(cacheDirectory({ SLUICE_CACHE: "/somewhere", XDG_CACHE_HOME: "/other" })).toBe("/somewhere");
    expect(cacheDirectory({ SLUICE_CACHE: "here" })).toBe(path.resolve("here"));
  });

  it("is in the user's cache directory otherwise", () => {
    expect(cacheDirectory({ XDG_CACHE_HOME: "/other" })).toBe("/other/sluice");
    expect(cacheDirectory({})).toBe(path.join(homedir(), ".cache", "sluice"));
  });

  it("ignores an empty setting and a relative XDG_CACHE_HOME", () => {
    expect(cacheDirectory({ SLUICE_CACHE: "", XDG_CACHE_HOME: "relative" })).toBe(path.join(homedir(), ".cache", "sluice"));
  });
});
