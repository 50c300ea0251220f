/** Questions to click, for whoever has not thought of one yet. The model `demo` answers the first alone: it has no other script. */
export interface Sample {
  readonly title: string;
  readonly question: string;
}

const demo: Sample = {
  title: "Reserves of all venues",
  question: "How did the total reserves of all venues change over two years, and how much of it was flow?",
};

const market: readonly Sample[] = [
  demo,
  { title: "Daily returns", question: "Plot the distribution of daily BTC returns and say how fat its tails are." },
  { title: "Who grew", question: "Which venue gained the most reserves over the last year? Show all of them as a bar chart." },
  { title: "Price and flow", question: "Do months of net inflow go along with rising prices? Draw both and give the correlation." },
];

export function samplesFor({ model, isBundledSample }: { model: string | null; isBundledSample: boolean }): readonly Sample[] {
  if (!isBundledSample) return [];
  return model === "demo" ? [demo] : market;
}
