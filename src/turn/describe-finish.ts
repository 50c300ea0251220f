/** Why an answer that came to an end is not whole; null when it is. Errors have a part of their own in the stream. */
export function describeFinish(finishReason: string): string | null {
  switch (finishReason) {
    case "length":
      return "The model's answer was cut off at its limit of output.";
    case "content-filter":
      return "The provider's content filter ended the model's answer.";
    default:
      return null;
  }
}
