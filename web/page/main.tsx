import "../style/theme.css";
import "../style/charts.css";
