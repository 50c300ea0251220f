/** The only question that the demo answers: it has a script for it, over the bundled sample. */
export const demoQuestion = "How did the total reserves of all venues change over two years, and how much of it was flow?";

export const noModelMessage = "No model is connected.";
export const demoOnlyMessage = `${noModelMessage} The demo answers its sample question only.`;

/** How to connect a model: what to type before Sluice is started. Any of the names after the colon can be another one. */
export const waysToConnect: readonly { readonly title: string; readonly lines: readonly string[] }[] = [
  { title: "OpenAI", lines: ["export OPENAI_API_KEY=YOUR_KEY", "export SLUICE_MODEL=openai:gpt-5.2"] },
  { title: "Anthropic", lines: ["export ANTHROPIC_API_KEY=YOUR_KEY", "export SLUICE_MODEL=anthropic:claude-sonnet-4-5"] },
  {
    title: "Ollama, vLLM or any other OpenAI-compatible address",
    lines: ["export OPENAI_COMPATIBLE_BASE_URL=http://127.0.0.1:11434/v1", "export SLUICE_MODEL=openai-compatible:llama3.3"],
  },
];

export const worksWithoutModel: readonly string[] = [
  `The demo answers one question, about its sample data: “${demoQuestion}”`,
  "The page shows your files: their columns and rows, with search, filters and downloads.",
  "`sluice run` runs your Python in a sandbox.",
  "`sluice mcp` gives the sandbox and your files to an assistant or editor that has a model of its own.",
];

/** The same as text, for a terminal and for clients of the API. */
export const howToConnect: string = [
  "To connect one, type the lines of your provider, then start Sluice again:",
  ...waysToConnect.flatMap(({ title, lines }) => [`  ${title}`, ...lines.map((line) => `    ${line}`)]),
  "What works without a model:",
  ...worksWithoutModel.map((line) => `  ${line}`),
].join("\n");
