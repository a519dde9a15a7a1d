#!/usr/bin/env python3
"""Trains on the first GPU and sets what was predicted beside it: gpu_runs.py RECKON FOLDER OUT.json, devices on standard
input. Without a device, or without a reckon that trains on it, OUT.json says why and the exit code is 0."""
import json
import os
import shutil
import subprocess
import sys

# What nvidia-smi calls a device, and the hardware file that describes it; the first that fits.
HARDWARE = [("GH200", None), ("GB200", "gb200-72x"), ("B200", "b200-180gb-8x"), ("H200", "h200-141gb-8x"),
            ("H100 NVL", "h100-nvl-94gb-8x"), ("H100 PCIe", "h100-pcie-80gb-8x"), ("H100", "h100-80gb-8x"),
            ("A100-SXM4-40GB", "a100-40gb-8x"), ("A100-PCIE-40GB", "a100-pcie-40gb-8x"),
            ("A100 80GB PCIe", "a100-pcie-80gb-8x"), ("A100", "a100-80gb-8x"), ("L40S", "l40s-48gb-8x"),
            ("RTX A6000", "a6000-48gb-8x"), ("RTX 4090", "rtx4090-24gb-8x"), ("RTX 3090", "rtx3090-24gb-8x")]

# Name, backend, arguments of `reckon run tests/device/gpu.yaml`. Two ranks as threads share the GPU, so that its
# collectives run too; the same plan in FP32 on the processors must give the same losses.
SMALL = ["model=llama-10m", "batch.sequence_length=256", "parallel.data=2", "train.steps=8"]
RUNS = [("two ranks on one GPU", "threads", SMALL + ["precision.compute=fp32"]),
        ("two ranks on one GPU, bf16", "threads", SMALL + ["parallel.zero=1"]),
        ("1B class on one GPU", "nccl", [])]


def hardware_of(device):
    return next((file for name, file in HARDWARE if name in device), None)


def losses(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line)["loss"] for line in file]


def run(reckon, folder, name, backend, arguments):
    """One run with its comparison, or how it failed."""
    shutil.rmtree(folder, ignore_errors=True)
    plan = os.path.join(os.path.dirname(__file__), "gpu.yaml")
    command = [reckon, "run", plan, "--backend", backend, "--out", folder, "--json", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode != 0:
        return {"name": name, "outcome": "failed", "exit_code": ended.returncode, "error": ended.stderr[-2000:]}
    with open(os.path.join(folder, "comparison.json"), encoding="utf-8") as file:
        comparison = json.load(file)
    measured = json.loads(ended.stdout)
    return {"name": name, "outcome": "passed", "losses": losses(folder), "step": measured["step"],
            "memory": [stage["memory"] for stage in measured["stages"]], "comparison": comparison["rows"]}


def runs(reckon, folder, hardware):
    results = [run(reckon, os.path.join(folder, str(i)), name, backend, [f"hardware={hardware}", *arguments])
               for i, (name, backend, arguments) in enumerate(RUNS)]
    host = run(reckon, os.path.join(folder, "host"), "the first on processors", "mpi",
               [f"hardware={hardware}", *RUNS[0][2]])
    if results[0]["outcome"] == host["outcome"] == "passed":  # FP32 sums in other orders
        worst = max(abs(a - b) for a, b in zip(results[0]["losses"], host["losses"]))
        results[0]["largest_loss_difference_to_processors"] = worst
        if not worst < 1e-3:
            results[0]["outcome"] = "failed"
            results[0]["error"] = f"losses differ from the processors' by {worst}"
    return results + [host]


def main():
    reckon, folder, out = sys.argv[1:]
    devices = [line.strip() for line in sys.stdin if line.strip()]
    hardware = hardware_of(devices[0]) if devices else None
    if not devices:
        result = {"skipped": "no NVIDIA device is seen here"}
    elif hardware is None:
        result = {"skipped": f"no hardware file describes {devices[0]}"}
    elif not os.access(reckon, os.X_OK):
        result = {"skipped": f"{reckon} is not there: preset gpu was not built"}
    else:
        result = {"hardware": hardware, "runs": runs(reckon, folder, hardware)}
    with open(out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    if "skipped" in result:
        print(f"no training on a GPU: {result['skipped']}")
        return 0
    for one in result["runs"]:
        print(f"{one['name']}: {one['outcome']}{' ' + one['error'] if 'error' in one else ''}")
    return 1 if any(one["outcome"] == "failed" for one in result["runs"]) else 0


if __name__ == "__main__":
    sys.exit(main())
