// The first thing on the page: does it fit, and the figures one asks for next.
"use strict";

const MEMORY_PARTS = ["parameters", "gradients", "optimizer", "activations", "transient", "communication", "allocator_slack",
  "communicators", "context"];

function verdictHero(data) {
  const profile = data.profiles[0], verdict = profile.verdict, measured = measuredProfile(data);
  const hero = element("div", {class: "hero " + (verdict.fits ? "good" : "bad")},
    element("p", {class: "sentence"}, element("span", {class: "badge"}, verdict.fits ? "FITS" : "DOES NOT FIT"), data.verdict));
  if (verdict.nearest) hero.append(element("p", {class: "next"}, "Nearest plan that fits: ", element("code", {}, verdict.nearest)));
  const worst = profile.stages.reduce((a, b) => b.memory.device_used > a.memory.device_used ? b : a, profile.stages[0]);
  if (worst) hero.append(...memoryGauge(worst, verdict.limit_bytes));
  hero.append(stepTiles(profile.step, measured, data));
  return hero;
}

function measuredProfile(data) {
  return data.profiles.find((profile, index) => index > 0 && profile.source === "measured");
}

// The fullest stage against what a device has for it. need and limit leave the context out, like the verdict.
function memoryGauge(stage, limit) {
  const parts = MEMORY_PARTS.filter(name => name !== "context" && stage.memory[name] > 0);
  const total = parts.reduce((sum, name) => sum + stage.memory[name], 0);
  const whole = Math.max(limit, total);
  return [
    element("div", {class: "gauge", role: "img", "aria-label": "memory of the fullest stage against the limit"}, ...parts.map(name =>
      element("i", {title: spoken(name) + ": " + bytesText(stage.memory[name]),
        style: {width: 100 * stage.memory[name] / whole + "%", background: COLOURS[name]}}))),
    legend(parts.map(name => [spoken(name) + " " + bytesText(stage.memory[name]), COLOURS[name]])),
  ];
}

function stepTiles(step, measured, data) {
  const interval = step.interval_seconds;
  const beside = measured ? "measured " + secondsText(measured.step.seconds) :
    interval[1] > interval[0] ? secondsText(interval[0]) + " to " + secondsText(interval[1]) + " in 80 % of cases" : "";
  const tiles = [
    tile(secondsText(step.seconds), "a step", beside),
    tile(compactText(step.tokens_per_second_per_device), "tokens/s per device",
      measured ? "measured " + compactText(measured.step.tokens_per_second_per_device) : compactText(step.tokens) + " tokens a step"),
    tile(percentText(step.mfu), "model FLOPs utilisation", "HFU " + percentText(step.hfu) + ", " + step.flop_convention),
    tile(percentText(step.bubble_fraction), "pipeline bubble", plural(data.profiles[0].world_size, "device")),
  ];
  if (measured) tiles.unshift(...errorTiles(data.comparison));
  return element("div", {class: "tiles"}, ...tiles);
}

function errorTiles(comparison) {
  if (!comparison) return [];
  const row = comparison.rows.find(candidate => candidate.quantity === "step.seconds");
  const peaks = comparison.rows.filter(candidate => candidate.quantity.endsWith(".peak_allocated") && candidate.error !== null);
  const worst = peaks.reduce((a, b) => Math.abs(b.error) > Math.abs(a.error) ? b : a, peaks[0]);
  return [
    row ? tile(signedPercent(row.error), "error of the step time", "predicted against measured") : null,
    worst ? tile(signedPercent(worst.error), "error of the peak memory", "worst stage") : null,
  ].filter(Boolean);
}
