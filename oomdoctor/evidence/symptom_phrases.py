"""Set phrases in which people tell what they saw, and the facts that each states.

nvidia-smi shows memory in use but no process       the table is empty
half the batch runs                                 a trial
since the driver update                             what changed
"""

from __future__ import annotations


def _without(what: str) -> str:
    """Match what people say of something in use: it runs without it, or without it less is used."""
    well = r"(?:runs?|ran|works?|worked|fits?|fitted|pass(?:es|ed)?|fine|ok(?:ay)?)"
    less = rf"(?:{well}|only|enough|half|a (?:third|quarter)|\d+ ?%)"
    out = rf"without (?:{what})\b"
    return rf"\b{well} (?:\w+ )?{out}|\b{out}[^,;]{{0,24}}(?<!\w){less}(?!\w)"


# (a regular expression over lower-case text, KEY=VALUE statements)
PLAIN = (
    (
        r"\bbus error|\bsigbus|/dev/shm|\bshared memory\b(?!.{0,30}kernel)|\bshm\b",
        ("host.shm_error=true",),
    ),
    (
        r"\b(?:data ?loader )?workers?\b[^,;]{0,20}\b(?:killed|exited unexpectedly|died)",
        ("host.worker_killed=true",),
    ),
    (
        r"\boom[- ]?kill\w*|\boomkilled|\bslurm\w*[^.;]{0,40}\bkill\w*",
        ("host.oom_kill=true",),
    ),
    (
        (
            r"\bbefore the kill\b|(?<!oom )(?<!worker )(?<!workers )\b(?:was |gets? |got "
            r"|simply |just |only )?killed\b(?! by me)|\bexit(?:s"
            r"|ed)?[^,;]{0,16}\b(?:code )?(?:137|-9)\b|\bsigkill|\breturn code -9"
        ),
        ("host.killed=true",),
    ),
    (
        r"\bmemoryerror|\bcannot allocate memory|\bunable to allocate",
        ("host.allocation_failed=true",),
    ),
    (
        r"\bpaging file|\b(?:win)?error 1455",
        ("host.paging_file=true",),
    ),
    (
        (
            r"\bno (?:running )?process(?:es)?\b|\bempty (?:process )?(?:table|list)"
            r"|\bprocess (?:table|list) is empty|\bwithout (?:any |a )?process\b|\bzombie"
            r"|\bdefunct"
        ),
        ("gpu.process_table_empty=true", "balance.foreign_low_share=0.2"),
    ),
    (
        (
            r"\b(?:other|another|someone|somebody|colleague\w*"
            r"|else'?s?)\b[^,;]{0,40}\b(?:on|uses?|using|holds?|holding|occup\w+|takes?"
            r"|runs?|running|share[sd]?|sits?)\b[^,;]{0,30}\b(?:card|gpu|memory|it"
            r"|there)\b|\b(?:card|gpu)\b[^,;]{0,30}\b(?:used|occupied|shared"
            r"|taken) by (?:other|another|some)\w*"
        ),
        ("gpu.foreign_share=0.2", "balance.foreign_low_share=0.2"),
    ),
    (
        (
            r"\b(?:only|just) (?:my|this|our|the training|one)\b[^,;]{0,16}\b(?:process"
            r"|job|program)|\b(?:nobody|no ?one|nothing) else\b|\bempty (?:card|gpu)"
            r"|\bcard is (?:empty|mine|free)"
        ),
        ("gpu.process_rows=1", "gpu.foreign=0 B", "balance.foreign_low_share=0"),
    ),
    (
        (
            r"\b(?:several|many|multiple|\d+|each|all) (?:of )?(?:my |our |own "
            "|the )?(?:worker|python|server|web|uvicorn|gunicorn"
            "|celery)?(?: worker)? ?(?:process|processes|workers|instances"
            r"|copies)\b[^,;]{0,40}\b(?:card|gpu|gigabytes|gb|model)\b"
        ),
        ("gpu.process_rows=3", "gpu.same_program_rows=3", "gpu.small_rows=0"),
    ),
    (
        (
            r"(?<!no )(?<!without )(?<!w/o )\bcpu[- ]?offload\w*(?! ?[:=]? ?(?:no|off|false))"
            r"|(?<!no )(?<!without )(?<!not )\boffload\w*[^,;]{0,24}\b(?:cpu|ram|host)"
        ),
        ("optimizer.offload=cpu",),
    ),
    (
        (
            r"\bappend\w*[^,;]{0,40}\b(?:list|dict|array|buffer)"
            r"|\bcollect\w*[^,;]{0,24}\b(?:outputs|predictions|features|embeddings|logits"
            r"|results)|\bkeep\w*[^,;]{0,24}\b(?:outputs|predictions|features|logits)"
        ),
        ("code.appends_outputs=true",),
    ),
    (
        (
            r"\b(?:loss|losses)\b ?\+= ?\w+|\+= ?(?:the )?loss\b|\b(?:sum|add|accumulat"
            r"|averag)\w*[^,;]{0,20}\b(?:the )?loss(?:es)?\b(?! scal)|\brunning (?:average"
            r"|sum|total|mean)[^,;]{0,16}\bloss"
        ),
        ("code.loss_accumulated=true",),
    ),
    (
        r"\bwithout compute_metrics",
        ("eval.compute_metrics=true",),
    ),
    (
        r"(?<!without )\bcompute_metrics\b(?! (?:is )?(?:off|none|not))",
        ("eval.compute_metrics=true",),
    ),
    (
        r"\b(?:without|no|missing|forgot) (?:torch\.)?no_?grad",
        ("eval.no_grad=false", "code.eval_without_no_grad=true"),
    ),
    (
        r"\b(?:under|with|inside|uses?) (?:torch\.)?(?:no_?grad|inference_mode)",
        ("eval.no_grad=true",),
    ),
    (
        (
            r"\b(?:new|updat\w*|upgrad\w*|chang\w*|latest)\b[^,;]{0,20}\bdrivers?\b"
            r"|\bdriver (?:updat|upgrad|chang)\w*"
        ),
        ("history.changed=driver",),
    ),
    (
        (
            r"\b(?:after|since)\b[^,;]{0,20}\b(?:updat|upgrad)\w+(?![^,;]{0,20}driver)"
            r"|\b(?:worked|ran|fitted) (?:fine )?(?:with|on|in) (?:the )?(?:version"
            r"|v?\d+\.\d)|\bnewer? version|\bpip install -u\b|\bdowngrad\w+"
            r"|\bv?\d+\.\d[\w.]* (?:works|worked|runs|ran|is fine|was fine|fits"
            r"|is not affected)\b"
        ),
        ("history.changed=library",),
    ),
    (
        (
            r"\b(?:previous|older|earlier|last) commit\b[^,;]{0,20}\b(?:works|worked|runs"
            "|ran|fits|is fine)"
        ),
        ("history.changed=code",),
    ),
    (
        r"\beven (?:with|at) (?:an? )?batch(?: ?size)?(?: of)?(?: one| ?1)\b",
        ("trial.smaller_batch=same",),
    ),
    (
        (
            r"\b(?:smaller|half|lower|reduc\w+|halv\w+)[^,;]{0,20}\b(?:batch\w*|rows"
            r"|length)[^,;]{0,30}\b(?:same|not (?:help|move|change)|does ?n[o']t (?:help"
            "|move|change)|no (?:help|difference|effect)|also fails|fails too|anyway)"
        ),
        ("trial.smaller_batch=same",),
    ),
    (
        (
            r"\b(?:smaller|half|lower|reduc\w+|halv\w+)[^,;]{0,20}\b(?:batch\w*|rows"
            r"|length)[^,;]{0,30}\b(?:works|runs|fits|helps|passes|is fine|solves)"
            r"|\bbatch(?: ?size)?(?: of)? \d+ (?:works|runs|fits|is fine|passes)"
        ),
        ("trial.smaller_batch=runs",),
    ),
    (
        (
            r"\b(?:increas\w*|rais\w+|chang\w+|go(?:es|ing)?)\b[^.;!?]{0,16}\bbatch[^.;!?]{0,24}"
            r"\b(?:from )?\d+ to \d+\b(?![^.;!?]{0,24}\b(?:fine|works|runs|fits)\b)"
        ),
        ("trial.smaller_batch=runs",),
    ),
    (
        r"\bfrom scratch\b[^,;]{0,30}\b(?:works|runs|fits|is fine|passes)",
        ("resume.on=true",),
    ),
    (
        r"\bfresh (?:start|run)s?\b[^,;]{0,20}\b(?:work|run|fit|pass|fine)\w*",
        ("resume.on=true",),
    ),
    (
        (
            r"\b(?:next|second|each|every|new) (?:run|trial|fold|cell|try"
            r"|call)\b[^,;]{0,40}\b(?:higher|more|fails|starts|oom|out of memory)"
            r"|\bre-?run\w*[^,;]{0,16}\bcell|\bsame (?:notebook|session|kernel|process)\b"
        ),
        ("oom.repeats_same_allocated=true",),
    ),
    (
        (
            r"\bone (?:card|gpu) (?:is )?full[^;]{0,40}\b(?:others?|rest)\b"
            r"|\bonly (?:the )?(?:first|last|one) (?:card|gpu)[^,;]{0,10}\bfull"
            r"|\b(?:uneven(?:ly)?|(?<!class )imbalanced?)\b[^,;]{0,24}\b(?:cards?|gpus?|vram"
            r"|memory|ranks?|devices?)\b|\b(?:cards?|gpus?|vram|memory|ranks?"
            r"|devices?|layers)\b[^,;]{0,24}\b(?:uneven(?:ly)?|imbalanced?)\b"
        ),
        ("gpu.imbalance=0.6",),
    ),
    (
        (
            r"\b(?:one|a single|1) (?:gpu|card|rank)\b[^.]{0,30}\bon (?:several|multiple|many"
            r"|two|four|eight|[248])(?=[,;]|$)|\bmulti-?gpu\b"
            r"|\b(?:several|multiple|two|four|eight|[248]) (?:gpus|cards|ranks)\b"
        ),
        ("dist.world_size=2",),
    ),
    (
        (
            r"\b(?:until|without|no|missing) (?:an? |the )?(?:torch_)?dtype\b"
            r"|\bloads? (?:it )?in (?:fp32|float32|full precision)"
        ),
        ("train.base_dtype=fp32",),
    ),
    (
        _without(r"vllm|sglang|the engine"),
        ("gen.colocated_engine=true",),
    ),
    (
        r"\bretain_graph|\bcreate_graph",
        ("code.retain_graph=true",),
    ),
    (
        rf"\breduce-overhead|{_without('(?:cuda ?)?graphs?')}|\bcuda ?graphs?\b",
        ("compile.cudagraphs=true",),
    ),
)
