// Matrix products and the embedding table, split over the tensor group (Megatron-LM, 1909.08053; with sequence
// parallelism 2205.05198): who multiplies what, and which collectives join the parts.
#pragma once

#include "runtime/train/op_call.h"

namespace reckon {

/// Weight split by outputs. Sequence parallel: the input's rows are gathered, its gradient reduce-scattered; otherwise
/// the input gradient is all-reduced.
void column_product_forward(OpCall& call);
void column_product_backward(OpCall& call);

/// Weight split by inputs. Sequence parallel: partial outputs are reduce-scattered over rows, their gradient gathered;
/// otherwise they are all-reduced. The bias is added once, after the sum.
void row_product_forward(OpCall& call);
void row_product_backward(OpCall& call);

/// Table split by rows: other ranks' tokens give zeros, and the parts are summed like a row product's.
void embedding_forward(OpCall& call);
void embedding_backward(OpCall& call);

}  // namespace reckon
