// Memory by stage and component, and over the time of a step.
"use strict";

function memoryByStage(data) {
  const rows = [], one = data.profiles[0].stages.length === 1 && data.profiles.length > 1;
  for (const stage of data.profiles[0].stages)
    for (const profile of data.profiles) {
      const same = profile.stages.find(other => other.stage === stage.stage);
      if (same) rows.push({name: one ? profile.source : (data.profiles.length > 1 ? "stage " + stage.stage + " \u00b7 " + profile.source : "stage " + stage.stage), memory: same.memory});
    }
  const shown = MEMORY_PARTS.filter(name => rows.some(row => row.memory[name] > 0));
  const largest = Math.max(...rows.map(row => shown.reduce((sum, name) => sum + row.memory[name], 0)));
  const context = Math.max(...rows.map(row => row.memory.context));
  const limit = data.profiles[0].verdict.limit_bytes + context, unit = byteUnit(largest), near = limit < 4 * largest;
  const datasets = shown.map(name => ({label: spoken(name), backgroundColor: COLOURS[name], barPercentage: 0.86, categoryPercentage: 0.94,
    data: rows.map(row => row.memory[name] / unit.size)}));
  const chart = drawChart("memory by stage and component", 112 + rows.length * 24, "bar", {labels: rows.map(row => row.name), datasets}, {
    indexAxis: "y",
    scales: {x: axis(unit.name, {stacked: true, suggestedMax: near ? limit * 1.02 / unit.size : undefined}), y: axis("", {stacked: true, grid: {display: false}, ticks: {autoSkip: false}})},
    tooltip: {callbacks: {label: item => item.dataset.label + ": " + bytesText(Math.round(item.raw * unit.size))}},
    plugins: near ? [limitLine("x", limit / unit.size, "limit " + bytesText(limit))] : [],
  });
  return section("Memory by stage and component",
    "At the moment of the peak, on the fullest rank of each stage" + (near ? "." : "; the limit of " + bytesText(limit) + " is far to the right."),
    chart, folded("as a table", memoryTable(rows, shown)));
}

function memoryTable(rows, shown) {
  return sortableTable([{name: "stage", text: row => row.name, left: true},
    ...[...shown, "peak_allocated", "device_used"].map(name => ({name: spoken(name), text: row => bytesText(row.memory[name]), value: row => row.memory[name]}))], rows);
}

function memoryOverTime(data) {
  if (!data.memory_over_time.length) return null;
  const curves = data.memory_over_time;
  const peaks = curves.map(curve => Math.max(...curve.total_bytes));
  const holder = element("div"), limit = data.profiles[0].verdict.limit_bytes;
  const show = index => {
    holder.replaceChildren(memoryCurve(curves[index], limit));
    makeWaitingCharts();
  };
  const fullest = peaks.indexOf(Math.max(...peaks));
  const picker = curves.length > 1 ? element("div", {class: "tools"}, choice("stage", curves.map((curve, index) => curve.stage + ", peak " + bytesText(peaks[index])), fullest, show)) : null;
  const initial = memoryCurve(curves[fullest], limit);
  holder.append(initial);
  return section("Memory over one step", "Simulated: what a rank of the stage has allocated at every moment; the peak of each interval is kept.", picker, holder);
}

function memoryCurve(curve, limit) {
  const names = Object.keys(curve.bytes).filter(name => curve.bytes[name].some(bytes => bytes > 0));
  const peak = Math.max(...curve.total_bytes), unit = byteUnit(peak), time = timeUnit(curve.seconds), near = limit < 2 * peak;
  const columns = curve.total_bytes.length;
  const datasets = names.map(name => ({label: spoken(name), backgroundColor: COLOURS[name], borderColor: COLOURS[name], borderWidth: 0,
    pointRadius: 0, fill: true, stepped: true,
    data: curve.bytes[name].map((bytes, i) => ({x: i * curve.seconds / columns / time.size, y: bytes / unit.size}))}));
  return element("div", {}, drawChart("memory over time", 280, "line", {datasets}, {
    zoom: "x",
    interaction: {mode: "index", intersect: false},
    scales: {x: axis("time, " + time.name, {type: "linear", min: 0, max: curve.seconds / time.size}),
      y: axis("allocated, " + unit.name, {stacked: true, min: 0, suggestedMax: near ? limit * 1.03 / unit.size : undefined})},
    tooltip: {callbacks: {title: items => items.length ? figures(items[0].parsed.x) + " " + time.name : "",
      label: item => item.dataset.label + ": " + bytesText(Math.round(item.raw.y * unit.size))}},
    plugins: near ? [limitLine("y", limit / unit.size, "limit " + bytesText(limit))] : [],
  }));
}
