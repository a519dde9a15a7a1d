#!/usr/bin/env python3
"""How much nearer to measured memory reckon is than the estimate that Megatron-LM prints about itself.

    bench/megatron_estimator.py RUNS.csv [--program build/cpu/bin/reckon] [--json FILE]

RUNS.csv is a table as `reckon score` reads it, with the rows of Megatron-LM's functional tests (source megatron_lm_golden),
whose peak allocated bytes were recorded by the allocator on the last pipeline stage. The estimate follows the formulas of
megatron/training/theoretical_memory_usage.py at commit 00caa53 (states: 18 bytes a weight, or 6 + 12 / data parallel;
activations: 2205.05198, table 2, with sequence parallelism and selective recomputation, its form of 10 + 24 / tensor bytes a
token and hidden unit otherwise). It speaks of the most loaded stage, so rows without a pipeline, where both mean the same
stage, are listed apart. Both sides take the vocabulary that `reckon score` assumes where the table has none.
"""
import argparse, csv, json, pathlib, statistics, subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSUMED_VOCABULARY = 51200  # as `reckon score` assumes it for these rows


def shape(row):
    """Model and batch of a row of the table, as numbers."""
    number = lambda key, otherwise: int(row[key]) if row[key] else otherwise
    hidden, heads = int(row["hidden"]), int(row["n_heads"])
    return dict(layers=int(row["n_layers"]), hidden=hidden, ffn=number("ffn_hidden", 4 * hidden), heads=heads,
                kv_heads=number("n_kv_heads", heads), vocabulary=number("vocab", ASSUMED_VOCABULARY),
                gated=row["gated_mlp"] == "1", selective=row["recompute"] == "selective")


def state_bytes(m, plan, tied):
    parallel = plan["parallel"]
    layer = 2 * m["hidden"] ** 2 * (1 + m["kv_heads"] / m["heads"]) + \
        2 * m["hidden"] * (m["ffn"] * (1.5 if m["gated"] else 1) + 2)
    table = m["hidden"] * m["vocabulary"]
    weights = (m["layers"] * layer + 2 * m["hidden"]) / parallel["pipeline"] + table
    if not tied and parallel["pipeline"] == 1:
        weights += table
    return weights / parallel["tensor"] * (6 + 12 / parallel["data"] if parallel["zero"] else 18)


def activation_bytes(m, plan):
    batch, parallel = plan["batch"], plan["parallel"]
    stages, chunks, tensor = parallel["pipeline"], parallel["chunks"], parallel["tensor"]
    tokens = batch["sequence_length"] * batch["micro_batch"]
    with_sequence = parallel["sequence"] and m["selective"]
    a_layer = tokens * m["hidden"] * (18 + 4 * m["ffn"] / m["hidden"] if with_sequence else 10 + 24 / tensor)
    total = a_layer * m["layers"] + (8 + m["hidden"]) * tokens * stages
    if chunks > 1:
        total *= 1 + (stages - 1) / (stages * chunks)
    elif stages > 1:
        total *= min(1, batch["global_batch"] / (batch["micro_batch"] * parallel["data"] * stages))
    if with_sequence:
        return (total + (4 * tokens * (m["hidden"] + m["vocabulary"]) if stages == 1 else 0)) / tensor
    return 1.05 * (total + (2 * tokens * (m["hidden"] + m["vocabulary"] / tensor) if stages == 1 else 0))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", type=pathlib.Path)
    p.add_argument("--program", type=pathlib.Path, default=ROOT / "build/cpu/bin/reckon")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    table = list(csv.DictReader(a.runs.open(newline="")))
    scored = json.loads(subprocess.run([a.program, "score", a.runs, "--rows", "--json"], check=True, capture_output=True).stdout)
    errors = {"no pipeline": [], "pipeline": []}
    for row in scored["rows"]:
        if row["group"] != "megatron_lm_golden" or row["status"] != "scored":
            continue
        given = table[row["row"] - 2]  # counted from 1, after the header
        assert given["source_id"] == row["group"], "the rows of the table and of the score differ"
        m, measured = shape(given), row["measured"]["memory_bytes"]
        tied = "untie" not in given["notes"]
        estimate = state_bytes(m, row["plan"], tied) + activation_bytes(m, row["plan"])
        kind = "no pipeline" if row["plan"]["parallel"]["pipeline"] == 1 else "pipeline"
        errors[kind].append((estimate / measured - 1, row["predicted"]["memory_bytes"] / measured - 1))
    errors["all"] = errors["no pipeline"] + errors["pipeline"]
    print(f"{'rows':14} {'number':>6}  {'':9} mean error   median  within 5 %")
    summary = {}
    for kind, pairs in errors.items():
        for side, name in enumerate(["Megatron-LM", "reckon"]):
            sizes = [abs(pair[side]) for pair in pairs]
            figures = dict(rows=len(sizes), mean=statistics.mean(sizes), median=statistics.median(sizes),
                           within_5_percent=sum(s <= 0.05 for s in sizes) / len(sizes))
            summary.setdefault(kind, {})[name] = figures
            print(f"{kind:14} {len(sizes):6}  {name:11} {figures['mean']:8.1%} {figures['median']:8.1%} "
                  f"{figures['within_5_percent']:9.0%}")
    if a.json:
        a.json.write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
