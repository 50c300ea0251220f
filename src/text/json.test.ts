import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanMessage } from "./json.ts";

describe("scanMessage", () => {
  it("returns the text of structuredContent exactly as sent", () => {
    const text = ' { "id" : 1 , "result" : {"x":"}\\\\\\"", "structuredContent":\t[ 1.10, {"a":"]"} ] , "y":[]} } ';
    expect(scanMessage(text)).toEqual({ isResponse: true, structuredJson: '[ 1.10, {"a":"]"} ]' });
  });

  it.each([
    ['{"id":1,"result":{}}', true, undefined],
    ['{"id":1,"method":"x","params":{"result":{"structuredContent":1}}}', false, undefined],
    ['{"method":"x"}', false, undefined],
    ['{"id":1,"result":{"content":[{"structuredContent":1}]}}', true, undefined],
    ['{"id":1,"result":{"structuredContent":1,"structuredContent":2}}', true, "2"],
    ['{"id":1,"result":{"structured\\u0043ontent":null}}', true, "null"],
    ['{"id":1,"result":7}', true, undefined],
    ["[]", false, undefined],
    ["{broken", false, undefined],
    ["", false, undefined],
  ])("reads %s", (text, isResponse, structuredJson) => {
    expect(scanMessage(text)).toEqual({ isResponse, structuredJson });
  });

  it("finds what JSON.parse finds, in any message", () => {
    const space = fc.constantFrom(undefined, 1, 4, "\t");
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue()), space, (structuredContent, others, indent) => {
        const message = { jsonrpc: "2.0", result: { ...others, structuredContent, after: others }, id: 3 };
        const { isResponse, structuredJson } = scanMessage(JSON.stringify(message, null, indent));
        expect(isResponse).toBe(true);
        expect(JSON.parse(structuredJson!)).toEqual(JSON.parse(JSON.stringify(structuredContent)));
      }),
    );
  });

  it("terminates on any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", "[", "]", '"', "\\", ":", ",", " ", "a", "1") }), (text) => {
        try {
          scanMessage(text);
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
        }
      }),
    );
  });
});
