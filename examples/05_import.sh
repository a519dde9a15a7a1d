# A Megatron-LM script becomes a plan; what was not understood is named.
reckon import megatron.sh --hardware a100-80gb-8x --out "$SCRATCH/plan.yaml" 2>&1 | grep -A 1 'not understood'
reckon plan "$SCRATCH/plan.yaml" | head -4
# Contradictions are refused in the file's own words: on one node its sizes ask for more ranks than there are.
reckon import megatron.sh --devices 8
echo "exit code $?"
# And back: the plan as TorchTitan's file. What TorchTitan cannot be told stands in warnings.
reckon export "$SCRATCH/plan.yaml" --to torchtitan 2>&1 | grep -E '^(warning|\[parallel|tensor|pipeline|data)'
