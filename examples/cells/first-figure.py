"""A first cell: two years of daily readings, their monthly mean, and a figure. Every name used here is available without an import."""

rng = np.random.default_rng(7)
days = pd.date_range("2024-01-01", "2025-12-31", freq="D")
season = 12 + 9 * np.sin(2 * np.pi * (days.day_of_year.to_numpy() - 110) / 365.25)
readings = pd.DataFrame({"day": days, "celsius": season + rng.normal(0, 2.2, len(days))})

monthly = readings.set_index("day")["celsius"].resample("MS").agg(["mean", "min", "max"]).round(1)

fig, ax = plt.subplots(figsize=(9, 4.2))
ax.plot(readings["day"], readings["celsius"], lw=0.7, alpha=0.55, label="daily")
ax.plot(monthly.index + pd.Timedelta(days=14), monthly["mean"], lw=2.4, label="monthly mean")
ax.set_ylabel("temperature in °C")
ax.set_title("Two years of daily readings")
ax.legend(frameon=False)
save_figure(alt="Line chart of daily temperatures over two years with their monthly mean", title="Two years of daily readings")

print(f"{len(readings)} readings, {readings['celsius'].mean():.2f} °C on average")
set_result(monthly.tail(6))
