"""Registry rows for lint: groups of answers, what trainers are handed, wheels and their cards."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, text, version
from oomdoctor.facts.table_config import CONFIG, C

S = ("train-script",)
WHEEL = "python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list())'"

ROWS = (
    boolean("logging.named", "report_to is set; known to be missing in a whole config alone."),
    boolean("logging.null", "report_to is null or None, and not the word none."),
    count("train.empty_cache_steps", "Steps after which the cache is emptied.", closed_by=C),
    count("rl.generations", "Answers per prompt in training.", closed_by=C),
    count("rl.eval_generations", "Answers per prompt in evaluation.", closed_by=C),
    count("rl.generation_batch", "Answers generated at once, as stated.", closed_by=C),
    count("rl.group", "Answers per prompt: stated, or TRL's default (derived)."),
    count("rl.generation_rows", "Answers that all ranks generate at once (derived)."),
    boolean("rl.groups_uneven", "They are no whole number of groups (derived)."),
    boolean("rl.eval_groups_uneven", "Nor is an evaluation batch of all ranks (derived)."),
    count("rl.even_accum", "Least accumulation from the stated one on that makes them whole."),
    boolean("eval.without_data", "Evaluation is asked for without an evaluation set (derived)."),
    boolean("code.evaluates", "A trainer is given an evaluation set.", obtain=CONFIG),
    boolean("code.hands_tokenizer", "A trainer or its collator is given the tokenizer."),
    boolean("code.own_loss", "A trainer is given compute_loss_func.", closed_by=S),
    boolean("merge.one_load", "The base that is merged into is the only one loaded (derived)."),
    boolean("env.transformers_known", "The version of transformers is not merely assumed."),
    version("env.torch_cuda", "CUDA that PyTorch was built for: 12.8 of +cu128.", obtain=WHEEL),
    text("env.arch_list", "Architectures in that build: `sm_75 sm_80 ...`.", obtain=WHEEL),
    boolean("env.arch_missing", "No kernel of that build runs on the card.", obtain=WHEEL),
)
