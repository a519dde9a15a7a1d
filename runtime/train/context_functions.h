// Ops of attention on a rank that holds a part of each row (op_functions.cpp): attention itself with its ring, and the
// all-to-alls of Ulysses (arXiv 2309.14509), which turn [own tokens, all heads] into [all tokens, own heads] and back.
#pragma once

#include "runtime/train/op_call.h"

namespace reckon {

void attention_forward_op(OpCall& call);
void attention_backward_op(OpCall& call);
void scatter_heads_forward(OpCall& call);
void scatter_heads_backward(OpCall& call);
void gather_heads_forward(OpCall& call);
void gather_heads_backward(OpCall& call);

}  // namespace reckon
