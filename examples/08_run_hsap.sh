# HSAP and its two baselines on 2 x 2 ranks (all-to-all x ring), a small model, FineWeb-like documents on short rows: memory
# and messages come out as predicted; only HSAP keeps documents apart. bench/hsap_table.py prints the paper's table.
for method in hsap packing batching; do
  reckon run tiny.yaml method=$method parallel.data=1 parallel.ulysses=2 parallel.ring=2 documents.source=short.lengths \
    batch.sequence_length=64 batch.micro_batch=1 batch.global_batch=4 --backend threads --out "$SCRATCH/$method" \
    >"$SCRATCH/$method.txt" 2>/dev/null || cat "$SCRATCH/$method/error.json"
  echo "$method"
  grep -E '^(ulysses|ring)[a-z_.0-9]*(calls|bytes_per_rank) ' "$SCRATCH/$method.txt"
  reckon compare "$SCRATCH/$method" --tolerance memory.stage0.peak_allocated=0.01 >/dev/null 2>&1
  echo "exit code of compare: $?"
done
