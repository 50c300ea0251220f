import { readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { helperNames, isReservedPythonName } from "../protocol/python-names.ts";
import { createToolAliases, nameGivenAlias, namePartAlias } from "./name-alias.ts";

const free = (): boolean => false;
const nameToolAlias = (tool: string, isTaken: (alias: string) => boolean): string => createToolAliases(isTaken)(tool);

describe("aliases", () => {
  it.each([
    ["get_price", "get_price_1"],
    ["market__get_price", "get_price_1"],
    ["my_server__get__price", "get_price_1"],
    ["get-price.v2", "get_price_v2_1"],
    ["getPrice", "getPrice_1"],
    ["prix_été", "prix_ete_1"],
    ["価格", "output_1"],
    ["3d_render", "output_3d_render_1"],
    ["__init__", "init_1"],
    ["class", "class_1"],
    ["", "output_1"],
    ["x".repeat(500), `${"x".repeat(48)}_1`],
  ])("an output of %s is named %s", (tool, alias) => {
    expect(nameToolAlias(tool, free)).toBe(alias);
  });

  it.each([
    ["prices", "prices"],
    ["class", "class_data"],
    ["match", "match_data"],
    ["list", "list_data"],
    ["pd", "pd_data"],
    ["inputs", "inputs_data"],
    ["save_figure", "save_figure_data"],
    ["pandas", "pandas_data"],
    ["2024 sales", "data_2024_sales"],
  ])("data called %s is named %s", (name, alias) => {
    expect(nameGivenAlias(name, free)).toBe(alias);
  });

  it("use the next number if a name is taken", () => {
    const taken = new Set(["get_price_1", "get_price_2", "prices", "get_price_1_image"]);
    expect(nameToolAlias("get_price", (alias) => taken.has(alias))).toBe("get_price_3");
    expect(nameGivenAlias("prices", (alias) => taken.has(alias))).toBe("prices_2");
    expect(namePartAlias({ alias: "get_price_1", part: "image", isTaken: (alias) => taken.has(alias) })).toBe("get_price_1_image_2");
  });

  it("are numbered in order, without checking all earlier numbers each time", () => {
    const taken = new Set<string>();
    let looks = 0;
    const isTaken = (alias: string): boolean => {
      looks += 1;
      return taken.has(alias);
    };
    const nameOutput = createToolAliases(isTaken);
    for (let number = 1; number <= 1000; number += 1) {
      looks = 0;
      const alias = nameOutput("noop");
      expect(alias).toBe(`noop_${number}`);
      taken.add(alias);
    }
    expect(looks).toBeLessThan(3);
  });

  it("are free, unreserved Python identifiers for any name of a tool or file", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 8 }), (names) => {
        const taken = new Set<string>();
        for (const name of names) {
          for (const give of [nameToolAlias, nameGivenAlias]) {
            const alias = give(name, (asked) => taken.has(asked));
            expect(alias).toMatch(/^[A-Za-z][A-Za-z0-9_]{0,79}$/);
            expect(isReservedPythonName(alias)).toBe(false);
            expect(taken.has(alias)).toBe(false);
            taken.add(alias);
          }
        }
      }),
    );
  });

  it("avoid every helper of the Python library", () => {
    const library = readFileSync(path.join(import.meta.dirname, "../../python/sluice/__init__.py"), "utf8");
    const helpers = [...library.split("__all__ = ")[1]!.matchAll(/"(\w+)"/g)].map(([, name]) => name!);
    expect(helpers.length).toBeGreaterThan(5);
    expect([...helperNames].sort()).toEqual(helpers.sort());
  });
});
