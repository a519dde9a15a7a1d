#!/usr/bin/env python3
"""The table of the HSAP paper (arXiv 2606.30460) on this machine, predicted and measured.

Three methods (HSAP, Packing, Batching) on four topologies (intra x inter: all-to-all x ring) of eight ranks:

    bench/hsap_table.py [--steps 5] [--rounds 1] [--topologies 8x1 ...] [--out runs/hsap] [KEY=VALUE ...]

Prints useful tokens a second and rank, iterations a second, and peak memory, each predicted and measured, and the facts
that the paper claims: HSAP ahead in every topology, and less spread over topologies than Packing. Twelve runs take about
six minutes on two cores, of which measuring the machine for each topology takes two.
"""
import profiled_runs

TOPOLOGIES = ["8x1", "4x2", "2x4", "1x8"]
METHODS = ["hsap", "packing", "batching"]
FIGURES = {"tokens": lambda profile: profile["step"]["useful_tokens_per_second_per_device"],
           "rate": lambda profile: 1.0 / profiled_runs.step_seconds(profile),
           "memory": lambda profile: max(stage["memory"]["peak_allocated"] for stage in profile["stages"]) / 2**20}


def name_of(topology, method):
    return f"{topology}-{method}"


def keys_of(topology, method):
    ulysses, ring = topology.split("x")
    return [f"method={method}", f"parallel.ulysses={ulysses}", f"parallel.ring={ring}"]


def spread(values):
    return max(values) / min(values) - 1.0


def main():
    parser = profiled_runs.parser(__doc__, "runs/hsap", steps=5, rounds=1)
    parser.add_argument("--topologies", nargs="+", default=TOPOLOGIES, choices=TOPOLOGIES)
    options = parser.parse_args()
    topologies = options.topologies
    runs = profiled_runs.Runs(options, {name_of(t, m): keys_of(t, m) for t in topologies for m in METHODS})

    print(f"{'topology':9} {'method':9} | {'useful tokens/s/rank':^29} | {'iterations/s':^25} | {'peak MiB':^25}")
    print(f"{'':9} {'':9} | {'predicted':>10} {'measured':>10} {'error':>7} | {'predicted':>8} {'measured':>8} {'error':>7}"
          f" | {'predicted':>8} {'measured':>8} {'error':>7}")
    tokens, step_errors, memory_errors = {}, [], []
    for topology in topologies:
        for method in METHODS:
            row = {key: runs.median(name_of(topology, method), figure) for key, figure in FIGURES.items()}
            error = {key: predicted / measured - 1.0 for key, (predicted, measured) in row.items()}
            tokens[method, topology] = row["tokens"]
            step_errors.append(abs(row["rate"][1] / row["rate"][0] - 1.0))
            memory_errors.append(abs(error["memory"]))
            print(f"{topology:9} {method:9} | {row['tokens'][0]:10.1f} {row['tokens'][1]:10.1f} {error['tokens']:+7.1%}"
                  f" | {row['rate'][0]:8.3f} {row['rate'][1]:8.3f} {error['rate']:+7.1%}"
                  f" | {row['memory'][0]:8.1f} {row['memory'][1]:8.1f} {error['memory']:+7.2%}")

    for index, kind in enumerate(("predicted", "measured")):
        ahead = sum(all(tokens["hsap", t][index] > tokens[m, t][index] for m in METHODS[1:]) for t in topologies)
        spreads = [f"{m} {spread([tokens[m, t][index] for t in topologies]):.1%}" for m in METHODS[:2]]
        print(f"{kind}: HSAP ahead of both baselines in {ahead} of {len(topologies)} topologies; spread over topologies:"
              f" {', '.join(spreads)}")
    print(f"step time: mean error {sum(step_errors) / len(step_errors):.1%}, largest {max(step_errors):.1%};"
          f" peak memory: largest {max(memory_errors):.2%}; all runs took {runs.seconds:.0f} s")


if __name__ == "__main__":
    main()
