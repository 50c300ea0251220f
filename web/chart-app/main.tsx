import "../style/theme.css";
import "../style/charts.css";
import "./chart-app.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ChartApp } from "./chart-app.tsx";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ChartApp />
    </StrictMode>,
  );
}
