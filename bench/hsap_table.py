#!/usr/bin/env python3
"""The table of the HSAP paper (arXiv 2606.30460) on this machine, predicted and measured.

Three methods (HSAP, Packing, Batching) on four topologies (intra x inter: all-to-all x ring) of eight ranks:

    bench/hsap_table.py [--plan cpu-hsap] [--steps 8] [--out runs/hsap] [KEY=VALUE ...]

Prints useful tokens a second and rank, iterations a second, and peak memory, each predicted and measured, and the facts
that the paper claims: HSAP ahead in every topology, and less spread over topologies than Packing.
"""
import argparse
import json
import pathlib
import subprocess
import sys

TOPOLOGIES = [(8, 1), (4, 2), (2, 4), (1, 8)]
METHODS = ["hsap", "packing", "batching"]


def run(arguments, method, ulysses, ring):
    folder = pathlib.Path(arguments.out) / f"{ulysses}x{ring}-{method}"
    command = [arguments.reckon, "run", arguments.plan, "--steps", str(arguments.steps), "--out", str(folder), "--json",
               f"method={method}", f"parallel.ulysses={ulysses}", f"parallel.ring={ring}", *arguments.overrides]
    if arguments.backend:
        command += ["--backend", arguments.backend]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with exit code {ended.returncode}")
    return [json.loads((folder / name).read_text()) for name in ("predicted.json", "measured.json")]


def figures(profile):
    step = profile["step"]
    return {"tokens": step["useful_tokens_per_second_per_device"], "rate": 1.0 / step["seconds"],
            "memory": max(stage["memory"]["peak_allocated"] for stage in profile["stages"]) / 2**20}


def spread(values):
    return max(values) / min(values) - 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", default="cpu-hsap")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--out", default="runs/hsap")
    parser.add_argument("--backend", default="")
    parser.add_argument("--reckon", default="reckon")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    arguments = parser.parse_args()

    print(f"{'topology':9} {'method':9} | {'useful tokens/s/rank':^29} | {'iterations/s':^25} | {'peak MiB':^25}")
    print(f"{'':9} {'':9} | {'predicted':>10} {'measured':>10} {'error':>7} | {'predicted':>8} {'measured':>8} {'error':>7}"
          f" | {'predicted':>8} {'measured':>8} {'error':>7}")
    measured_tokens, errors = {}, {"rate": [], "memory": []}
    for ulysses, ring in TOPOLOGIES:
        for method in METHODS:
            predicted, measured = (figures(profile) for profile in run(arguments, method, ulysses, ring))
            measured_tokens[method, (ulysses, ring)] = measured["tokens"]
            error = {key: predicted[key] / measured[key] - 1.0 for key in predicted}
            errors["rate"].append(measured["rate"] / predicted["rate"] - 1.0)  # of the step time
            errors["memory"].append(error["memory"])
            print(f"{ulysses}x{ring:<7} {method:9} | {predicted['tokens']:10.1f} {measured['tokens']:10.1f}"
                  f" {error['tokens']:+7.1%} | {predicted['rate']:8.3f} {measured['rate']:8.3f} {error['rate']:+7.1%}"
                  f" | {predicted['memory']:8.1f} {measured['memory']:8.1f} {error['memory']:+7.2%}", flush=True)

    ahead = [all(measured_tokens["hsap", t] > measured_tokens[m, t] for m in METHODS[1:]) for t in TOPOLOGIES]
    spreads = {m: spread([measured_tokens[m, t] for t in TOPOLOGIES]) for m in METHODS[:2]}
    print(f"HSAP ahead of both baselines in {sum(ahead)} of {len(ahead)} topologies; spread over topologies:"
          f" HSAP {spreads['hsap']:.1%}, Packing {spreads['packing']:.1%}")
    print(f"step time: mean error {sum(map(abs, errors['rate'])) / 12:.1%}, largest {max(map(abs, errors['rate'])):.1%};"
          f" peak memory: largest {max(map(abs, errors['memory'])):.2%}")


if __name__ == "__main__":
    main()
