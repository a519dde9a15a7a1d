#!/usr/bin/env python3
"""Placements measured on unbalanced packs: one long document of half a row and sixteen short ones, on a ring.

    bench/placements.py [--steps 8] [--ring 4] [--out runs/placements] [KEY=VALUE ...]

The bar: `balanced` takes less time a step than contiguous and zigzag.
"""
import argparse
import json
import pathlib
import subprocess
import sys

PLACEMENTS = ["balanced", "contiguous", "zigzag", "zigzag_per_document", "striped"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", default="cpu-hsap")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--ring", type=int, default=4)
    parser.add_argument("--row", type=int, default=8192)
    parser.add_argument("--out", default="runs/placements")
    parser.add_argument("--backend", default="")
    parser.add_argument("--reckon", default="reckon")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    lengths = folder / "half-long.lengths"
    lengths.write_text("\n".join(map(str, [arguments.row // 2] + [arguments.row // 32] * 16)) + "\n")

    print(f"{'placement':20} {'predicted s':>12} {'measured s':>12} {'imbalance':>10} {'blocks':>7}")
    measured_seconds = {}
    for placement in PLACEMENTS:
        run = folder / placement
        command = [arguments.reckon, "run", arguments.plan, "--steps", str(arguments.steps), "--out", str(run), "--json",
                   f"batch.sequence_length={arguments.row}", "batch.global_batch=1", "parallel.ulysses=1",
                   f"parallel.ring={arguments.ring}", f"documents.source={lengths}", "documents.packer=concatenate",
                   f"documents.placement={placement}", *arguments.overrides]
        if arguments.backend:
            command += ["--backend", arguments.backend]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with exit code {ended.returncode}")
        predicted, measured = (json.loads((run / name).read_text()) for name in ("predicted.json", "measured.json"))
        measured_seconds[placement] = measured["step"]["seconds"]
        packing = predicted["packing"]
        print(f"{placement:20} {predicted['step']['seconds']:12.4f} {measured['step']['seconds']:12.4f}"
              f" {packing['imbalance']:10.2f} {packing['kv_blocks_max']:7.2f}", flush=True)
    better = all(measured_seconds["balanced"] < measured_seconds[p] for p in ("contiguous", "zigzag"))
    print(f"balanced faster than contiguous and zigzag: {'yes' if better else 'no'}")


if __name__ == "__main__":
    main()
