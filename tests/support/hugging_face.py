#!/usr/bin/env python3
"""Weights written by the Hugging Face library and what that library computes with them, for tests.

    hugging_face.py write OUT [--tied] [--hidden 8] ...   a random LLaMA: config.json, model.safetensors, expected.json
    hugging_face.py loss FOLDER TOKEN TOKEN ...           mean loss that the library gives for a row of tokens

expected.json holds a row of tokens, the log-probabilities of every next token ([tokens - 1][vocabulary]) and the mean loss.
"""
import argparse, json, pathlib

import torch
import transformers


def evaluate(model, tokens):
    with torch.no_grad():
        logits = model.eval()(torch.tensor([tokens[:-1]])).logits[0].float()
    log_probabilities = torch.log_softmax(logits, dim=-1)
    targets = torch.tensor(tokens[1:])
    return log_probabilities, -log_probabilities[torch.arange(len(targets)), targets].double().mean().item()


def rope_parameters(a):
    scaled = {"none": {"rope_type": "default"},
              "linear": {"rope_type": "linear", "factor": 4.0},
              # wavelengths of 8 elements a head: 6 (kept), 63 (between), 628 (stretched)
              "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 128}}
    return {"rope_theta": 10000.0} | scaled[a.rope]


def write(a):
    torch.manual_seed(a.seed)
    config = transformers.LlamaConfig(
        vocab_size=a.vocabulary, hidden_size=a.hidden, intermediate_size=a.ffn, num_hidden_layers=a.layers,
        num_attention_heads=a.heads, num_key_value_heads=a.kv_heads, head_dim=a.hidden // a.heads,
        max_position_embeddings=a.tokens, rms_norm_eps=1e-5, rope_parameters=rope_parameters(a),
        tie_word_embeddings=a.tied, bos_token_id=0, eos_token_id=1)
    model = transformers.LlamaForCausalLM(config).float()
    for name, weight in model.named_parameters():  # large enough that an error anywhere moves the result
        weight.data = 1 + 0.2 * torch.randn(weight.shape) if "norm" in name else 0.4 * torch.randn(weight.shape)
    model.save_pretrained(a.folder)
    for extra in pathlib.Path(a.folder).glob("generation_config.json"):
        extra.unlink()
    tokens = torch.randint(a.vocabulary, (a.tokens + 1,)).tolist()
    log_probabilities, loss = evaluate(model, tokens)
    expected = {"tokens": tokens, "loss": loss,
                "log_probabilities": [[round(x, 7) for x in row] for row in log_probabilities.tolist()]}
    pathlib.Path(a.folder, "expected.json").write_text(json.dumps(expected) + "\n")


def loss(a):
    model = transformers.AutoModelForCausalLM.from_pretrained(a.folder, torch_dtype=torch.float32)
    print(repr(evaluate(model, a.tokens)[1]))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
writer = commands.add_parser("write")
writer.add_argument("folder")
writer.add_argument("--tied", action="store_true")
writer.add_argument("--rope", choices=["none", "linear", "llama3"], default="none")
for name, value in dict(seed=1, vocabulary=19, hidden=8, ffn=12, layers=2, heads=2, kv_heads=1, tokens=8).items():
    writer.add_argument("--" + name.replace("_", "-"), type=int, default=value)
writer.set_defaults(run=write)
reader = commands.add_parser("loss")
reader.add_argument("folder")
reader.add_argument("tokens", type=int, nargs="+")
reader.set_defaults(run=loss)
arguments = parser.parse_args()
arguments.run(arguments)
