# Predict, train on two ranks, compare: memory and traffic agree to the byte. (Times differ from machine to machine.)
reckon run tiny.yaml --backend threads --out "$SCRATCH/run" 2>/dev/null |
  grep -E '^(memory |stage0|traffic |gradient.all_reduce.fp32)'
echo "steps trained: $(wc -l <"$SCRATCH/run/metrics.jsonl")"
reckon compare "$SCRATCH/run" --tolerance memory.stage0.peak_allocated=0.01 >/dev/null 2>&1
echo "exit code of compare: $?"
