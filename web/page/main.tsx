import "../style/theme.css";
import "../style/charts.css";
import "../style/page.css";
import "../style/turn.css";
import "../style/panel.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./shell/app.tsx";
import { applyTheme, chosenTheme } from "./shell/theme.ts";

applyTheme(chosenTheme());
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
