"""Programs that know nothing of a trial."""

from __future__ import annotations

LOOP = """
import sys
import torch

rows, length = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Embedding(100, 64),
    torch.nn.Linear(64, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 100),
)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(50):
    ids = torch.randint(0, 100, (rows, length))
    logits = model(ids)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, flush=True)
print("END")
"""

HALVES = """
import torch

model = torch.nn.Linear(1000, 1000)
optimizer = torch.optim.SGD(model.parameters())
rows = 4096
for step in range(1000):
    while True:
        try:
            model(torch.ones(rows, 1000)).sum().backward()
            break
        except torch.OutOfMemoryError:
            rows //= 2
    optimizer.step()
    optimizer.zero_grad()
"""

TWO_OPTIMIZERS = """
import torch

first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
optimizers = [torch.optim.Adam(one.parameters()) for one in (first, second)]
for step in range(50):
    for micro in range(3):
        second(first(torch.ones(2, 8))).sum().backward()
        print("micro", flush=True)
    for number, optimizer in enumerate(optimizers):
        print("before", number, flush=True)
        optimizer.step()
        optimizer.zero_grad()
"""

WORKERS = """
import sys
import torch

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.ones(1000)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Rows(), 4, num_workers=2, multiprocessing_context=sys.argv[1], persistent_workers=True
    )
    model = torch.nn.Linear(1000, 10)
    optimizer = torch.optim.SGD(model.parameters())
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        print("step", flush=True)
    print("END")
"""

EVALUATES = """
import torch

model = torch.nn.Linear(1000, 1000)
optimizer = torch.optim.SGD(model.parameters())

def evaluate():
    model.eval()
    kept = [model(torch.ones(500, 1000)).relu() for _ in range(4)]
    model.train()
    return sum(float(one.sum()) for one in kept)

for step in range(100):
    model(torch.ones(10, 1000)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 5 == 4:
        print("evaluated", evaluate(), flush=True)
        torch.save(model.state_dict(), "model.pt")
print("END")
"""

DDP = """
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 1000))
optimizer = torch.optim.AdamW(model.parameters())
rows = int(sys.argv[1]) * (1 + rank)  # the second rank has twice as many
for step in range(50):
    model(torch.ones(rows, 1000)).relu().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("END")
dist.destroy_process_group()
"""

DEEPSPEED = """
import deepspeed
import torch

deepspeed.init_distributed("gloo")
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
groups = [{"params": list(model[0].parameters())}, {"params": list(model[2].parameters())}]
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(groups, lr=1e-3),
    config={
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 2,
        "zero_optimization": {"stage": 1, "reduce_bucket_size": 1000},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    },
)
for step in range(40):
    print("micro", flush=True)
    loss = engine(torch.ones(2, 64)).sum()
    engine.backward(loss)
    engine.step()
print("END")
"""

TINY = """
import argparse
import torch
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--bs", type=int, default=2)
parser.add_argument("--max_len", type=int, default=32)
given, _ = parser.parse_known_args()
config = LlamaConfig(
    vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=4,
    num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=65536,
)
torch.manual_seed(0)
"""

TRAINER = (
    TINY
    + """
from transformers import Trainer, TrainingArguments

class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        chance = torch.Generator().manual_seed(index)
        ids = torch.randint(0, 512, (given.max_len,), generator=chance)
        return {"input_ids": ids, "labels": ids}

arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=given.bs, gradient_accumulation_steps=2,
    max_steps=100, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    per_device_eval_batch_size=8,
)
trainer = Trainer(
    model=LlamaForCausalLM(config), args=arguments, train_dataset=Rows(4096), eval_dataset=Rows(64)
)
trainer.train()
print("END")
"""
)

TINY_LOOP = (
    TINY
    + """
model = LlamaForCausalLM(config)
model.train()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10):
    ids = torch.randint(0, 512, (given.bs, given.max_len))
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("END")
"""
)
