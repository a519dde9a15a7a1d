// Numbers with their units, as the text output of reckon writes them.
"use strict";

function bytesText(bytes) {
  const size = Math.abs(bytes);
  for (const [name, unit] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (size >= unit) return figures(bytes / unit) + " " + name;
  return bytes + " bytes";
}

function secondsText(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size >= 1) return figures(seconds) + " s";
  return size >= 1e-3 ? figures(seconds * 1e3) + " ms" : figures(seconds * 1e6) + " \u00b5s";
}

function figures(number) {
  return Number(number.toPrecision(4)).toLocaleString("en", {maximumFractionDigits: 4});
}

function percentText(share) {
  return share === null || share === undefined ? "\u2013" : figures(share * 100) + " %";
}

function signedPercent(share) {
  if (share === null || share === undefined) return "\u2013";
  return (share > 0 ? "+" : "") + (share * 100).toFixed(Math.abs(share) < 0.1 ? 2 : 1) + " %";
}

function compactText(number) {
  for (const [name, unit] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["k", 1e4]])
    if (Math.abs(number) >= unit) return figures(number / (unit === 1e4 ? 1e3 : unit)) + " " + name;
  return figures(number);
}

// One unit for a whole axis, chosen by its largest value.
function byteUnit(largest) {
  for (const [name, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (largest >= size) return {name, size};
  return {name: "bytes", size: 1};
}

function timeUnit(largest) {
  if (largest >= 1) return {name: "s", size: 1};
  return largest >= 1e-3 ? {name: "ms", size: 1e-3} : {name: "\u00b5s", size: 1e-6};
}

function plural(count, word) {
  return count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s");
}

function spoken(name) {
  return name.replaceAll("_", " ");
}
