import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["src/**/*.test.ts", "web/**/*.test.ts", "test/**/*.test.ts"],
    // Sandboxes are processes: on two cores, more test files at once only make each other slow.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Polls wait for an event; how long that takes depends on how busy the machine is.
    expect: { poll: { timeout: 30_000 } },
  },
});

export default config;
