#!/usr/bin/env python3
"""Placements measured on unbalanced packs: one long document of half a row and sixteen short ones, on a ring.

    bench/placements.py [--steps 4] [--rounds 2] [--ring 2] [--out runs/placements] [KEY=VALUE ...]

Two bars: `balanced` is predicted no worse than any fixed placement, and takes less time a step than contiguous and
zigzag. A ring of as many ranks as there are cores shows what unequal shares cost: ranks that share a core fill each
other's waiting. Takes about two minutes on two cores.
"""
import os

import profiled_runs

PLACEMENTS = ["balanced", "contiguous", "zigzag", "zigzag_per_document", "striped"]


def main():
    parser = profiled_runs.parser(__doc__, "runs/placements", steps=4, rounds=2)
    parser.add_argument("--ring", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--row", type=int, default=8192)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    lengths = options.out / "half-long.lengths"
    lengths.write_text("\n".join(map(str, [options.row // 2] + [options.row // 32] * 16)) + "\n")
    keys = [f"batch.sequence_length={options.row}", "batch.global_batch=1", "parallel.ulysses=1",
            f"parallel.ring={options.ring}", f"documents.source={lengths}", "documents.packer=concatenate",
            "model.layers=2"]
    runs = profiled_runs.Runs(options, {p: [*keys, f"documents.placement={p}"] for p in PLACEMENTS})

    print(f"{'placement':20} {'predicted s':>12} {'measured s':>12} {'error':>8} {'imbalance':>10} {'blocks':>7}")
    seconds = {}
    for placement in PLACEMENTS:
        predicted, measured = seconds[placement] = runs.median(placement, profiled_runs.step_seconds)
        packing = runs.profiles[placement][0][0]["packing"]
        print(f"{placement:20} {predicted:12.4f} {measured:12.4f} {predicted / measured - 1.0:+8.1%}"
              f" {packing['imbalance']:10.2f} {packing['kv_blocks_max']:7.2f}")
    balanced = seconds["balanced"]
    says = {True: "yes", False: "no"}
    print(f"balanced predicted no worse than the best fixed placement:"
          f" {says[all(balanced[0] <= seconds[p][0] * (1 + 1e-9) for p in PLACEMENTS)]}")
    print(f"balanced measured faster than contiguous and zigzag:"
          f" {says[all(balanced[1] < seconds[p][1] for p in ('contiguous', 'zigzag'))]}; all runs took {runs.seconds:.0f} s")


if __name__ == "__main__":
    main()
