#!/usr/bin/env python3
"""Joins GoogleTest's results of the GPU checks and the devices (standard input, a line each) into one JSON file."""
import json
import sys


def tests_of(path):
    """Every test with its outcome."""
    with open(path, encoding="utf-8") as file:
        suites = json.load(file)["testsuites"]
    for suite in suites:
        for test in suite["testsuite"]:
            outcome = "failed" if "failures" in test else "skipped" if test["result"] == "SKIPPED" else "passed"
            yield {
                "name": suite["name"] + "." + test["name"],
                "outcome": outcome,
                "seconds": float(test["time"].rstrip("s")),
                "reason": test.get("skipped_because", ""),
            }


def summary(path):
    """Counts by outcome, and the tests that did not pass."""
    tests = list(tests_of(path))
    counts = {outcome: sum(test["outcome"] == outcome for test in tests) for outcome in ("passed", "failed", "skipped")}
    return {**counts, "seconds": round(sum(test["seconds"] for test in tests), 3),
            "not_passed": [test for test in tests if test["outcome"] != "passed"]}


def main():
    stub, device, runs, out = sys.argv[1:]
    devices = [line.strip() for line in sys.stdin if line.strip()]
    result = {"schema": "reckon.gpu_check/1", "devices": devices, "stand_ins": summary(stub), "device_tests": summary(device)}
    with open(runs, encoding="utf-8") as file:
        result["training"] = json.load(file)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    ran = result["device_tests"]
    if ran["passed"] + ran["failed"] == 0:
        reasons = {test["reason"] for test in ran["not_passed"]}
        print(f"no test ran on a GPU: {'; '.join(sorted(reasons)) or 'no device'}")
    print(f"stand-ins: {result['stand_ins']['passed']} passed, {result['stand_ins']['failed']} failed; "
          f"on devices: {ran['passed']} passed, {ran['failed']} failed, {ran['skipped']} skipped; written to {out}")


main()
