// Where the time of a step goes: schedule, waterfall, roofline, traffic.
"use strict";

function scheduleTimeline(data) {
  const schedule = data.schedule;
  if (!schedule || !schedule.boxes.length) return null;
  const time = timeUnit(schedule.seconds);
  const stages = [...new Set(schedule.boxes.map(box => box[0]))].sort((a, b) => a - b);
  const lanes = stages.flatMap(stage => ["stage " + stage, "links " + stage]);
  const datasets = schedule.kinds.map((kind, index) => ({
    label: KIND_NAMES[kind] === undefined ? kind : kind === "network" ? "communication" : kind === "idle" ? "waiting for others" : KIND_NAMES[kind],
    backgroundColor: COLOURS[kind], grouped: false, borderSkipped: false, borderColor: "rgba(255, 255, 255, 0.55)",
    borderWidth: schedule.boxes.length < 700 ? 0.5 : 0, categoryPercentage: 1, barPercentage: kind === "network" || kind === "idle" ? 0.5 : 0.96,
    data: schedule.boxes.filter(box => box[1] === index).map(([stage, , micro_batch, chunk, start, end]) =>
      ({x: [start / time.size, end / time.size], y: (kind === "network" || kind === "idle" ? "links " : "stage ") + stage, micro_batch, chunk})),
  })).filter(dataset => dataset.data.length);
  const chart = drawChart("schedule of the pipeline stages", 90 + lanes.length * (lanes.length > 32 ? 11 : 19), "bar", {labels: lanes, datasets}, {
    indexAxis: "y", zoom: "x", view: {x: [0, readableEnd(schedule) / time.size]},
    scales: {x: axis("time, " + time.name, {min: 0, max: schedule.shown_seconds / time.size}),
      y: axis("", {grid: {display: false}, ticks: {autoSkip: false, font: {size: lanes.length > 32 ? 9 : 11},
        callback(value) { return lanes[value].startsWith("links") ? "" : lanes[value]; }}})},
    tooltip: {callbacks: {title: items => items.length ? items[0].label.replace("links", "links of stage") : "", label: item => boxText(item, time)}},
    plugins: [microBatchNumbers],
  });
  const begins = readableEnd(schedule) < schedule.shown_seconds ? " It begins with the filling of the pipeline; \u201call\u201d shows more." : "";
  const whole = begins + (schedule.shown_seconds >= schedule.seconds ? "" : " Drawn are the first " + secondsText(schedule.shown_seconds) + " of " + secondsText(schedule.seconds) + ".");
  return section("Schedule", "Simulated: work of one rank of each stage, numbered by micro-batch, with its communication below; gaps are the bubble." + whole, chart);
}

// The time up to which a row has no more boxes than the eye can tell apart.
const READABLE_BOXES = 60;
function readableEnd(schedule) {
  const first = schedule.boxes[0][0], row = schedule.boxes.filter(box => box[0] === first && schedule.kinds[box[1]] !== "network" && schedule.kinds[box[1]] !== "idle");
  return row.length > 2 * READABLE_BOXES ? row[READABLE_BOXES][4] : schedule.shown_seconds;
}

function boxText(item, time) {
  const {x, micro_batch, chunk} = item.raw;
  const batch = micro_batch >= 0 ? ", micro-batch " + micro_batch + (chunk > 0 ? ", chunk " + chunk : "") : "";
  return item.dataset.label + batch + ": " + secondsText((x[1] - x[0]) * time.size);
}

const microBatchNumbers = {id: "numbers", afterDatasetsDraw(chart) {
  const context = chart.ctx, area = chart.chartArea;
  context.save();
  context.beginPath();
  context.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  context.clip();
  context.fillStyle = "#ffffff";
  context.font = "10px " + Chart.defaults.font.family;
  context.textAlign = "center";
  context.textBaseline = "middle";
  chart.data.datasets.forEach((dataset, index) => {
    if (!chart.isDatasetVisible(index)) return;
    chart.getDatasetMeta(index).data.forEach((bar, place) => {
      const {micro_batch, y} = dataset.data[place], {x, base} = bar.getProps(["x", "base"]);
      if (micro_batch >= 0 && y.startsWith("stage") && Math.abs(x - base) > 15 && bar.height > 9)
        context.fillText(micro_batch, (x + base) / 2, bar.y);
    });
  });
  context.restore();
}};

// ---- step time

const COMPONENTS_SHOWN = 16;

function stepWaterfall(data) {
  const profile = data.profiles[0], others = data.profiles.slice(1);
  const parts = largestParts(profile, others);
  const time = timeUnit(profile.step.seconds);
  let end = 0;
  for (const part of parts) [part.start, end] = [end, end + part.seconds[0]];
  const bars = (index, colour) => parts.map(part => ({x: [part.start / time.size, (part.start + part.seconds[index]) / time.size], y: part.name, colour}));
  const datasets = data.profiles.map((one, index) => ({
    label: one.source, data: bars(index), barPercentage: 0.9, categoryPercentage: 0.86, borderSkipped: false,
    backgroundColor: index === 0 ? parts.map(part => COLOURS[kindOf(part.component)]) : COLOURS[one.source] + "88",
    borderColor: COLOURS[one.source], borderWidth: index === 0 ? 0 : 1, minBarLength: 1,
  }));
  const chart = drawChart("step time by component", 80 + parts.length * (16 + 8 * data.profiles.length), "bar", {labels: parts.map(part => part.name), datasets}, {
    indexAxis: "y",
    scales: {x: axis("time, " + time.name, {min: 0}), y: axis("", {grid: {display: false}, ticks: {autoSkip: false}})},
    legend: {display: data.profiles.length > 1, position: "bottom", labels: {boxWidth: 11, boxHeight: 11}},
    tooltip: {callbacks: {label: item => item.dataset.label + ": " + secondsText((item.raw.x[1] - item.raw.x[0]) * time.size)}},
  });
  const kinds = [...new Set(parts.map(part => kindOf(part.component)))];
  return section("Where the step time goes",
    "Components as the step loses them, on the slowest rank: one after another they add up to " + secondsText(profile.step.seconds) +
    (others.length ? "; below each, what the others say." : "."),
    legend(kinds.map(kind => [KIND_NAMES[kind], COLOURS[kind]])), chart, folded("all components as a table", timeTable(data)));
}

function exposedSeconds(profile, component) {
  const row = profile.time.find(candidate => candidate.component === component);
  return row ? row.exposed_seconds : 0;
}

function componentNames(data) {
  return [...new Set(data.profiles.flatMap(profile => profile.time.map(row => row.component)))];
}

// The largest components by kind and size, the rest as one, so that the bars still add up.
function largestParts(profile, others) {
  const all = [...new Set([profile, ...others].flatMap(one => one.time.map(row => row.component)))].map(component =>
    ({component, name: component, seconds: [profile, ...others].map(one => exposedSeconds(one, component))}));
  all.sort((a, b) => Math.max(...b.seconds) - Math.max(...a.seconds));
  const shown = all.filter(part => Math.max(...part.seconds) > 0).slice(0, COMPONENTS_SHOWN), rest = all.slice(shown.length);
  const kinds = Object.keys(KIND_NAMES);
  shown.sort((a, b) => kinds.indexOf(kindOf(a.component)) - kinds.indexOf(kindOf(b.component)) || b.seconds[0] - a.seconds[0]);
  if (rest.some(part => Math.max(...part.seconds) > 0))
    shown.push({component: "other", name: plural(rest.length, "more component"),
      seconds: [profile, ...others].map((_, index) => rest.reduce((sum, part) => sum + part.seconds[index], 0))});
  return shown;
}

function timeTable(data) {
  const columns = [{name: "component", text: row => row, left: true}];
  for (const profile of data.profiles)
    columns.push({name: profile.source, text: row => secondsText(exposedSeconds(profile, row)), value: row => exposedSeconds(profile, row)});
  columns.push({name: "share of the step", text: row => percentText(exposedSeconds(data.profiles[0], row) / data.profiles[0].step.seconds),
    value: row => exposedSeconds(data.profiles[0], row)});
  const busy = row => (data.profiles[0].time.find(one => one.component === row) || {seconds: 0}).seconds;
  columns.push({name: "busy, " + data.profiles[0].source, text: row => secondsText(busy(row)), value: busy});
  return sortableTable(columns, componentNames(data));
}

// ---- roofline

function roofline(data) {
  const roof = data.roofline;
  if (!roof || !roof.ops.length) return null;
  const ops = roof.ops.filter(op => op.flops > 0 && op.bytes > 0 && op.seconds > 0)
    .map(op => ({...op, x: op.flops / op.bytes, y: op.flops / op.seconds / 1e12}));
  const peak = roof.peak_flops / 1e12, ridge = roof.peak_flops / roof.bandwidth;
  const left = Math.min(...ops.map(op => op.x), ridge) / 2, right = Math.max(...ops.map(op => op.x), ridge) * 2;
  const longest = Math.max(...ops.map(op => op.seconds));
  const groups = [["forward", COLOURS.forward], ["input gradient", COLOURS.backward], ["weight gradient", COLOURS.optimizer], ["backward", COLOURS.transient]];
  const datasets = groups.map(([phase, colour]) => ({label: phase, backgroundColor: colour + "b0", borderColor: colour,
    data: ops.filter(op => op.phase === phase), pointRadius: context => 3 + 9 * Math.sqrt((context.raw ? context.raw.seconds : 0) / longest)})).filter(group => group.data.length);
  datasets.push({label: "roof: " + figures(peak) + " TFLOP/s, " + figures(roof.bandwidth / 1e9) + " GB/s", type: "line", borderColor: COLOURS.limit, borderWidth: 1.5,
    backgroundColor: COLOURS.limit, pointRadius: 0, data: [{x: left, y: left * roof.bandwidth / 1e12}, {x: ridge, y: peak}, {x: right, y: peak}]});
  const decades = value => { const exponent = Math.log10(value); return Math.abs(exponent - Math.round(exponent)) < 1e-6 ? figures(value) : ""; };
  const chart = drawChart("roofline of the ops", 340, "scatter", {datasets}, {
    scales: {x: axis("FLOP per byte moved", {type: "logarithmic", min: left, max: right, ticks: {callback: decades, maxRotation: 0, autoSkip: false}}),
      y: axis("TFLOP/s reached", {type: "logarithmic", ticks: {callback: decades}})},
    tooltip: {filter: item => item.raw.name !== undefined, callbacks: {label: item => item.raw.name + ", " + item.raw.phase + ": " + secondsText(item.raw.seconds) + ", " + percentText(roofShare(item.raw, roof)) + " of the roof"}},
  });
  return section("Roofline of the ops", "One call of each op on one rank, as predicted: the larger the dot, the longer it takes. Distance to the roof is speed not reached. " +
    "Ops that only move data count one FLOP an element.", chart, folded("as a table", rooflineTable(ops, roof)));
}

function roofShare(op, roof) {
  return Math.max(op.flops / roof.peak_flops, op.bytes / roof.bandwidth) / op.seconds;
}

function rooflineTable(ops, roof) {
  return sortableTable([{name: "op", text: op => op.name, left: true}, {name: "pass", text: op => op.phase, left: true},
    {name: "time", text: op => secondsText(op.seconds), value: op => op.seconds}, {name: "FLOP", text: op => compactText(op.flops), value: op => op.flops},
    {name: "bytes", text: op => bytesText(op.bytes), value: op => op.bytes}, {name: "FLOP/byte", text: op => figures(op.x), value: op => op.x},
    {name: "share of the roof", text: op => percentText(roofShare(op, roof)), value: op => roofShare(op, roof)}], ops);
}

// ---- traffic

const LINK_COLOURS = {"inside a node": "#4477cc", "between nodes": "#d1556b"};

function trafficByLink(data) {
  const rows = data.traffic;
  if (!rows.length) return null;
  const largest = Math.max(...rows.map(row => row.bytes_per_rank)), unit = byteUnit(largest);
  const links = Object.keys(LINK_COLOURS).filter(link => rows.some(row => row.link === link));
  const labels = rows.map(row => row.group + " \u00b7 " + spoken(row.collective) + " \u00b7 " + row.dtype);
  const datasets = links.map(link => ({label: link, backgroundColor: LINK_COLOURS[link], grouped: false, minBarLength: 2,
    data: rows.map(row => row.link === link ? row.bytes_per_rank / unit.size : null)}));
  const chart = drawChart("traffic by link", 90 + rows.length * 28, "bar", {labels, datasets}, {
    indexAxis: "y",
    scales: {x: axis("sent by a rank in a step, " + unit.name), y: axis("", {grid: {display: false}, ticks: {autoSkip: false}})},
    legend: {display: true, position: "bottom", labels: {boxWidth: 11, boxHeight: 11}},
    tooltip: {filter: item => item.raw !== null, callbacks: {label: item => bytesText(rows[item.dataIndex].bytes_per_rank) + " in " + plural(rows[item.dataIndex].calls, "call") + ", " + item.dataset.label}},
  });
  return section("Traffic by link", "By group of ranks; the colour is the slowest link that the group crosses.", chart, folded("as a table", sortableTable([
    {name: "group", text: row => row.group, left: true}, {name: "collective", text: row => spoken(row.collective), left: true}, {name: "format", text: row => row.dtype, left: true},
    {name: "link", text: row => row.link, left: true}, {name: "calls", text: row => row.calls.toLocaleString("en"), value: row => row.calls},
    {name: "sent by a rank", text: row => bytesText(row.bytes_per_rank), value: row => row.bytes_per_rank}], rows)));
}
