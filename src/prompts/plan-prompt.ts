/** The system instructions of the planning call. */
export const planInstructions = `You read a question about data before anything is fetched. Do not answer it. Say whether the user asks for a picture, for which measures, and over which population, as one JSON object:
{"chartIntent": "none" | "implied" | "explicit", "measures": ["…"], "population": "…"}
chartIntent is explicit only when the user asks for a chart, plot or figure. A total, net change, flow or threshold covers the whole requested population; top-N and selections are for display only.`;

/** Descriptions of the plan's fields in the schema that the model fills in. */
export const planFieldDescriptions = {
  chartIntent: "explicit: the user asks for a chart, plot or figure. implied: a picture would help. none: numbers or words only.",
  measures: "The requested numbers, one phrase each.",
  population: "What the measures cover: everything, unless the user explicitly asks for a bounded subset.",
} as const;

/** The population of a plan that was made without a model. */
export const wholePopulation = "everything that the question covers";
