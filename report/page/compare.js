// Prediction against measurement, run against run, plan against plan.
"use strict";

const BLAME_SHOWN = 12;

function blameChart(data, aspect, title, total) {
  if (!data.comparison) return null;
  const rows = data.comparison.rows.filter(row => row.aspect === aspect && row.blame).sort((a, b) => Math.abs(b.blame) - Math.abs(a.blame));
  if (!rows.length) return null;
  const shown = rows.slice(0, BLAME_SHOWN).map(row => ({name: row.quantity.replace(/^[a-z]+\./, ""), blame: row.blame}));
  const rest = rows.slice(BLAME_SHOWN);
  if (rest.length) shown.push({name: rest.length + " more", blame: rest.reduce((sum, row) => sum + row.blame, 0)});
  const chart = drawChart(title, 70 + shown.length * 23, "bar", {labels: shown.map(row => row.name), datasets: [{label: "blame",
    data: shown.map(row => row.blame * 100), backgroundColor: shown.map(row => row.blame > 0 ? COLOURS.measured : COLOURS.predicted), minBarLength: 2}]}, {
    indexAxis: "y",
    scales: {x: axis("% of " + total), y: axis("", {grid: {display: false}, ticks: {autoSkip: false}})},
    tooltip: {callbacks: {label: item => signedPercent(item.raw / 100)}},
  });
  return section(title, "Predicted minus measured, as a share of " + total + ". To the right: predicted too much. All of them add up to the error of the total.", chart);
}

function comparisonTable(data) {
  if (!data.comparison) return null;
  const columns = data.comparison.columns, text = (row, side) => valueText(row[side], row.unit);
  const sides = ["predicted", "simulated", "measured"].map((side, index) => ({side, name: columns[index]})).filter(one => one.name);
  return section("Every quantity", "", folded(plural(data.comparison.rows.length, "row"), sortableTable([{name: "quantity", text: row => row.quantity, left: true},
    ...sides.map(one => ({name: one.name, text: row => text(row, one.side), value: row => row[one.side]})),
    {name: "error", text: row => signedPercent(row.error), value: row => row.error === null ? -1 : Math.abs(row.error), worse: row => Math.abs(row.error) > 0.15}], data.comparison.rows)));
}

function valueText(value, unit) {
  if (value === null || value === undefined) return "\u2013";
  if (unit === "bytes") return bytesText(value);
  if (unit === "seconds") return secondsText(value);
  if (unit === "share") return percentText(value);
  return unit === "calls" ? value.toLocaleString("en") : compactText(value) + " /s";
}

function historySections(data) {
  const history = data.history;
  if (!history) return [];
  const series = (key, label, colour) => ({label, data: history.runs.map(run => run[key] === null ? null : Math.abs(run[key]) * 100), borderColor: colour, backgroundColor: colour,
    borderWidth: 1.8, pointRadius: 4, spanGaps: true});
  const chart = drawChart("error over runs", 300, "line", {labels: history.runs.map(run => run.name), datasets: [
    series("step_error", "step time", COLOURS.predicted), series("memory_error", "peak memory", COLOURS.measured)]}, {
    scales: {x: axis("run, oldest first"), y: axis("error, % of the measurement", {min: 0})},
    tooltip: {callbacks: {label: item => item.dataset.label + ": " + figures(item.raw) + " %"}},
  });
  return [element("div", {class: "hero " + (history.better ? "good" : "bad")}, element("p", {class: "sentence"},
      element("span", {class: "badge"}, history.better ? "BETTER" : "NOT BETTER"), history.sentence)),
    section("Error over runs", "Does the tool get better?", chart),
    section("The runs", "", sortableTable([{name: "run", text: run => run.name, left: true}, {name: "model", text: run => run.model, left: true},
      {name: "ranks", text: run => run.world_size, value: run => run.world_size},
      {name: "predicted", text: run => secondsText(run.predicted_seconds), value: run => run.predicted_seconds},
      {name: "measured", text: run => secondsText(run.measured_seconds), value: run => run.measured_seconds},
      {name: "error of time", text: run => signedPercent(run.step_error), value: run => Math.abs(run.step_error)},
      {name: "error of memory", text: run => signedPercent(run.memory_error), value: run => Math.abs(run.memory_error)},
      {name: "to blame", text: run => run.worst_component, left: true}], history.runs))];
}

function differenceSections(data) {
  const difference = data.difference;
  if (!difference) return [];
  const {from, to} = difference, rows = difference.rows;
  const faster = to.step_seconds < from.step_seconds;
  const hero = element("div", {class: "hero " + (!to.fits ? "bad" : faster ? "good" : "")},
    element("p", {class: "sentence"}, element("span", {class: "badge"}, faster ? "FASTER" : "SLOWER"),
      "The second plan takes " + secondsText(to.step_seconds) + " a step against " + secondsText(from.step_seconds) + " and needs " + bytesText(to.memory_bytes) + " against " + bytesText(from.memory_bytes) + "."),
    element("div", {class: "tiles"}, tile(signedPercent(to.step_seconds / from.step_seconds - 1), "step time"), tile(signedPercent(to.memory_bytes / from.memory_bytes - 1), "memory"),
      tile(from.fits ? "fits" : "does not fit", "the first plan"), tile(to.fits ? "fits" : "does not fit", "the second plan")));
  return [hero, element("div", {class: "pair"},
      keyWaterfall("Step time by changed key", rows, "seconds", from.step_seconds, timeUnit, secondsText),
      keyWaterfall("Memory by changed key", rows, "bytes", from.memory_bytes, byteUnit, bytesText)),
    section("What each key does", "Each key changed alone in the first plan, and what they do together beyond that; the rows add up.", sortableTable([
      {name: "key", text: row => row.key, left: true}, {name: "from", text: row => row.from, left: true}, {name: "to", text: row => row.to, left: true},
      {name: "step time", text: row => row.seconds === null ? "\u2013" : (row.seconds > 0 ? "+" : "") + secondsText(row.seconds), value: row => row.seconds},
      {name: "memory", text: row => row.bytes === null ? "\u2013" : (row.bytes > 0 ? "+" : "") + bytesText(row.bytes), value: row => row.bytes},
      {name: "note", text: row => row.note, left: true}], rows))];
}

function keyWaterfall(title, rows, key, start, unitOf, text) {
  const known = rows.filter(row => row[key]), unit = unitOf(start);
  let at = start;
  const bars = [{name: "first plan", x: [0, start], colour: COLOURS.other}];
  for (const row of known) bars.push({name: row.key, x: [at, at += row[key]], colour: row[key] > 0 ? COLOURS.limit : COLOURS.backward});
  bars.push({name: "second plan", x: [0, at], colour: COLOURS.other});
  const chart = drawChart(title, 60 + bars.length * 26, "bar", {labels: bars.map(bar => bar.name), datasets: [{label: title, minBarLength: 2, borderSkipped: false,
    data: bars.map(bar => bar.x.map(value => value / unit.size)), backgroundColor: bars.map(bar => bar.colour)}]}, {
    indexAxis: "y",
    scales: {x: axis(unit.name, {min: 0}), y: axis("", {grid: {display: false}, ticks: {autoSkip: false}})},
    tooltip: {callbacks: {label: item => text(Math.round((item.raw[1] - item.raw[0]) * unit.size * 1e9) / 1e9)}},
  });
  return section(title, "", chart);
}
