# An out-of-memory line: what of this plan has that size?
reckon explain llama3.1-8b-h100-node "CUDA out of memory. Tried to allocate 56.00 MiB." parallel.tensor=2 parallel.data=4
# Why is one plan slower than another? The differences add up.
reckon explain llama2-70b-128xa100 llama2-70b-128xa100 parallel.tensor=4 parallel.data=4
# What would help, and how few devices would do?
reckon explain llama3.1-8b-h100-node batch.sequence_length=65536 | sed -n '/single change/,$p'
