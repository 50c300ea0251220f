import { expect, test } from "vitest";
import { watchBody } from "./route.ts";

function watched(body: ConstructorParameters<typeof Response>[0]): { response: Response; ends: boolean[] } {
  const ends: boolean[] = [];
  const given = new Response(body, { status: 202, statusText: "Taken", headers: { "x-kind": "a" } });
  return { response: watchBody(given, (wasCutShort) => void ends.push(wasCutShort)), ends };
}

const endless = (): ReadableStream<Uint8Array> => new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(3)) });

test("watching does not change a response, and reports its end when the last byte was read", async () => {
  const { response, ends } = watched("abc");
  expect(ends).toEqual([]);
  expect([response.status, response.statusText, response.headers.get("x-kind")]).toEqual([202, "Taken", "a"]);
  expect(await response.text()).toBe("abc");
  expect(ends).toEqual([false]);
});

test("a response without a body ends at once", () => {
  expect(watched(null).ends).toEqual([false]);
});

test("a reader that leaves and a body that fails are reported as cut short", async () => {
  const left = watched(endless());
  await left.response.body!.cancel();
  expect(left.ends).toEqual([true]);
  const broken = watched(new ReadableStream({ pull: (controller) => controller.error(new Error("The disk is gone.")) }));
  await expect(broken.response.text()).rejects.toThrow("The disk is gone.");
  expect(broken.ends).toEqual([true]);
});
