// What a run wrote down step by step.
"use strict";

function lossCurve(data) {
  if (!data.metrics.length) return null;
  const points = key => data.metrics.filter(row => row[key] !== null).map(row => ({x: row.step, y: row[key]}));
  const line = (label, key, colour, more) => Object.assign({label, data: points(key), borderColor: colour, backgroundColor: colour, borderWidth: 1.8,
    pointRadius: data.metrics.length > 60 ? 0 : 2.5}, more);
  const chart = drawChart("loss by step", 280, "line", {datasets: [
    line("loss", "loss", COLOURS.predicted), line("gradient norm", "grad_norm", COLOURS.measured, {yAxisID: "norm", borderDash: [4, 3], borderWidth: 1.2})]}, {
    zoom: "x", interaction: {mode: "index", intersect: false},
    scales: {x: axis("step", {type: "linear", ticks: {precision: 0}}), y: axis("loss"),
      norm: axis("gradient norm", {position: "right", grid: {drawOnChartArea: false}})},
    tooltip: {callbacks: {title: items => items.length ? "step " + items[0].parsed.x : "", label: item => item.dataset.label + ": " + figures(item.parsed.y)}},
  });
  const last = data.metrics[data.metrics.length - 1];
  return section("Training", plural(data.metrics.length, "step") + "; the loss ends at " + figures(last.loss) + ".", chart);
}

// Two runs in one picture, and how far the second is off.
function lossesOfTwo(data) {
  const losses = data.comparison && data.comparison.losses;
  if (!losses) return null;
  const radius = losses.steps.length > 60 ? 0 : 2.5;
  const line = (label, values, colour, more) => Object.assign({label, data: losses.steps.map((step, i) => ({x: step, y: values[i]})), borderColor: colour,
    backgroundColor: colour, borderWidth: 1.6, pointRadius: radius}, more);
  const percent = losses.steps.map((step, i) => 100 * (losses.values[1][i] / losses.values[0][i] - 1));
  const chart = drawChart("losses of two runs by step", 300, "line", {datasets: [
    line(losses.names[0], losses.values[0], COLOURS.predicted), line(losses.names[1], losses.values[1], COLOURS.measured),
    line("difference, %", percent, COLOURS.limit, {yAxisID: "percent", borderDash: [4, 3], borderWidth: 1})]}, {
    zoom: "x", interaction: {mode: "index", intersect: false},
    scales: {x: axis("step", {type: "linear", ticks: {precision: 0}}), y: axis("loss"),
      percent: axis("difference, %", {position: "right", grid: {drawOnChartArea: false}})},
    tooltip: {callbacks: {title: items => items.length ? "step " + items[0].parsed.x : "", label: item => item.dataset.label + ": " + figures(item.parsed.y)}},
  });
  const parted = losses.parts_at === null ? "They are equal to the bit." : "They part at step " + losses.parts_at + " and are furthest apart at step " +
    losses.largest_at + ", by " + figures(100 * losses.largest_difference) + " %.";
  return section("Losses of the two runs", "Over the last " + plural(losses.final_steps, "step") + ": " + figures(losses.final[0]) + " and " + figures(losses.final[1]) +
    ", " + figures(100 * losses.final_difference) + " %. " + parted, chart);
}

function stepTimes(data) {
  if (data.metrics.length < 2) return null;
  const predicted = data.profiles[0].step.seconds, time = timeUnit(Math.max(...data.metrics.map(row => row.seconds)));
  const chart = drawChart("seconds of each step", 280, "line", {datasets: [
    {label: "measured", data: data.metrics.map(row => ({x: row.step, y: row.seconds / time.size})), borderColor: COLOURS.measured, backgroundColor: COLOURS.measured,
      borderWidth: 1.5, pointRadius: data.metrics.length > 60 ? 0 : 2.5},
    {label: "predicted", data: [{x: data.metrics[0].step, y: predicted / time.size}, {x: data.metrics[data.metrics.length - 1].step, y: predicted / time.size}],
      borderColor: COLOURS.predicted, backgroundColor: COLOURS.predicted, borderDash: [6, 4], borderWidth: 1.8, pointRadius: 0}]}, {
    zoom: "x", interaction: {mode: "nearest", intersect: false},
    scales: {x: axis("step", {type: "linear", ticks: {precision: 0}}), y: axis("step time, " + time.name, {min: 0})},
    tooltip: {callbacks: {title: items => items.length ? "step " + items[0].parsed.x : "", label: item => item.dataset.label + ": " + secondsText(item.parsed.y * time.size)}},
  });
  return section("Time of each step", "As measured, with the prediction across.", chart);
}
