"""The words in which people tell what they saw: places of a run, growth, good and bad ends.

during evaluation, about 300 samples in, it creeps up
training is fine; it dies when the checkpoint is written
somebody else's job sits on the same card
"""

from __future__ import annotations

# What a clause says went well; a place in such a clause is not where it failed.
GOOD = (
    r"\b(?:fine|fits?|fitted|works?|worked|runs?(?! (?:out|into))|ran(?! (?:out|into))|pass(?:es|ed)?"
    r"|succe\w+|ok(?:ay)?|good|completes?|completed|finish\w*|no (?:problem|issue)s?|goes (?:well|through)"
    r"|went (?:well|through)|at most|not (?:fail|crash|grow|affected)\w*|never (?:fail|crash)\w*|enough)\b"
)
BAD = (
    r"\b(?:fail\w*|crash\w*|die[sd]?|dying|dead|kill\w*|oom\w*|out of memory|runs? out|ran out|run into"
    r"|runs into|error\w*|abort\w*|explod\w*|blow\w*|breaks?|broke|does ?n[o']t (?:fit|work|run)|stops?"
    r"|can ?not|too (?:much|big|large)|exceed\w*|only|never (?:works|fits|runs)|not (?:fit|work|run)\w*)\b"
)
# Place of the run -> words; the first that fits a clause counts.
PLACES = (
    (
        "resume",
        r"\bresum\w+|\bload_(?:state|checkpoint)\w*|\bcontinu(?:e|ing) from|\brestart\w* from|\brestor(?:e|ing)\b",
    ),
    (
        "save",
        r"\bsav(?:e|es|ed|ing)\b|\bcheckpoint (?:is|was|gets) (?:being )?(?:written|saved)"
        r"|\bwrit(?:e|es|ing|ten)\b[^,;]{0,24}\bcheckpoint|\bcheckpointing to disk|\bsave_\w+|\bstate[_ ]dict",
    ),
    (
        "merge",
        r"\bmerg(?:e|es|ed|ing)\b|\bconvert(?:s|ed|ing)?\b[^,;]{0,20}\b(?:weights|model|adapter)",
    ),
    (
        "eval",
        r"\beval\w*|\bvalidat\w*|\bvalidation\w*|\bval(?:[_ ](?:loop|step|epoch|set|loss))\b"
        r"|\btest(?:ing| set| loop| phase)\b|\bcompute_metrics|\bpredict(?:ion|ing)\b",
    ),
    (
        "optimizer",
        r"\boptimi[sz]er(?:'s)?[ .]?(?:step|update)?|\boptim\.step|\badam (?:step|states?)",
    ),
    ("backward", r"\bback(?:ward|prop\w*)\b"),
    ("graph-capture", r"\bcaptur\w+\b[^,;]{0,20}\bgraphs?|\bgraph capture"),
    (
        "serve-start",
        r"\b(?:server|engine|vllm|sglang|tgi)\b[^,;]{0,30}\b(?:start\w*|boot\w*|launch\w*|init\w*|warm\w*)"
        r"|\bstart\w*[^,;]{0,20}\b(?:server|engine|vllm|sglang)|\bprofil\w+ run",
    ),
    (
        "serve",
        r"\b(?:serving|requests?|under load|concurrent (?:users|requests))\b",
    ),
    (
        "generate",
        r"\bgenerat\w*|\binference|\binferr?ing\b|\bsampling\b|\bdecod\w+|\bchat\w*|\bprompts?\b|\bpredict\b",
    ),
    (
        "load",
        r"\bload(?:s|ed|ing)?\b|\bfrom_pretrained|\bmodel\.(?:to|cuda)\b|\bmov(?:e|es|ing) the model"
        r"|\bbefore (?:the )?(?:first step|training|any step)|\bstart-?up\b|\binitiali[sz]\w+",
    ),
    ("loss", r"\b(?:in|at|computing|calculating) (?:the )?loss\b|\bcross[_ ]entropy|\blogits\b"),
    (
        "forward",
        r"\bforward\b|(?<!as the )\btrain(?:ing)?\b(?! (?:loss|set|data|samples?|file|script|ends?|has|is over))|\b(?:first|second|later) (?:step|batch|iteration)"
        r"|\bstep \d|\biterations? \d|(?<!last )(?<!final )\bepochs?\b",
    ),
)
GROWS = (
    r"\b(?:creep\w*|climb\w*|grow(?:s|ing|th|n)?|grew|increas\w+|ris(?:es|ing|e)\b|rose|leak\w*|accumulates?|accumulated"
    r"|go(?:es|ing) up|went up|build(?:s|ing)? up|add(?:s|ing)? up|piles? up|higher and higher|more and more"
    r"|swell\w*|balloon\w*|ramp\w*|inflat\w+)\b"
)
FLAT = (
    r"\b(?:flat|stable|steady(?!,? (?:\w+ )?(?:increas|grow|ris|climb|leak))|constant\w*|does ?n[o']t (?:grow|rise|increase|change)|not (?:grow|ris|increas)\w+"
    r"|no (?:growth|leak|increase)|never (?:grows|rises)|stays (?:the same|put)|unchanged)\b"
)
HOST = r"\b(?:ram|main memory|host memory|system memory|cpu memory|rss|swap)\b"
LATE = (
    r"\bafter (?:the )?(?:first )?epoch\b|\bafter (?:about |around |some |a few |several |many |roughly |~ ?|the )?"
    r"(?:\d[\d.,k]*|one|two|three|four|five|ten|tens|dozens|hundreds|thousands|half|hours?|days?|last|first epoch)"
    r"\b(?! ?(?:gb|gib|mb|mib|%))|\bhours? (?:in|later)|\b(?:epoch|step|iteration)s? (?:[2-9]\d|\d{3,}|[2-9])\b"
    r"|\bhalf(?:way)?\b[^,;]{0,12}\b(?:through|training|epoch)|\blate(?:r)? (?:in|step|epoch)|\beventually"
    r"|\bsometimes|\brandom\w*|\bsporadic\w*|\bonce in a while|\bover time|\b\d+ (?:samples|steps|batches|epochs) in\b"
    r"|\b(?:first|second|third|some|two|several) epochs? (?:is|are|runs?|go|goes|work|works|pass|passes)"
)
EARLY = (
    r"\bfirst (?:\w+ )?(?:step|batch|iteration|forward|backward|pass)\b|\bstep (?:0|1|one)\b|\bimmediately"
    r"|\bright (?:away|at the start)|\bat once\b|\binstantly|\bstraight away|\bfrom the (?:start|beginning)"
    r"|\bbefore (?:the )?(?:first|any) (?:step|batch)"
)
BOUNDARY = (
    r"\b(?:end|finish|close|boundary) of (?:an?|the|each|every|one) (?:first |last )?epoch|\bepoch end"
    r"|\bafter (?:the|each|every) (?:first |last )?epoch|\bbetween epochs|\bepoch to epoch|\bevery epoch"
)
# Words -> facts: what needs no place and no sense of good or bad. (pattern, facts)
PLAIN = (
    (
        r"\bbus error|\bsigbus|/dev/shm|\bshared memory\b(?!.{0,30}kernel)|\bshm\b",
        ("host.shm_error=true",),
    ),
    (
        r"\b(?:data ?loader )?workers?\b[^,;]{0,20}\b(?:killed|exited unexpectedly|died)",
        ("host.worker_killed=true",),
    ),
    (r"\boom[- ]?kill\w*|\boomkilled|\bslurm\w*[^.;]{0,40}\bkill\w*", ("host.oom_kill=true",)),
    (
        r"\bbefore the kill\b|(?<!oom )(?<!worker )(?<!workers )\b(?:was |gets? |got |simply |just |only )?killed\b(?! by me)"
        r"|\bexit(?:s|ed)?[^,;]{0,16}\b(?:code )?(?:137|-9)\b|\bsigkill|\breturn code -9",
        ("host.killed=true",),
    ),
    (
        r"\bmemoryerror|\bcannot allocate memory|\bunable to allocate",
        ("host.allocation_failed=true",),
    ),
    (r"\bpaging file|\b(?:win)?error 1455", ("host.paging_file=true",)),
    (
        r"\bno (?:running )?process(?:es)?\b|\bempty (?:process )?(?:table|list)|\bprocess (?:table|list) is empty"
        r"|\bwithout (?:any |a )?process\b|\bzombie|\bdefunct",
        ("gpu.process_table_empty=true", "balance.foreign_low_share=0.2"),
    ),
    (
        r"\b(?:other|another|someone|somebody|colleague\w*|else'?s?)\b[^,;]{0,40}\b(?:on|uses?|using|holds?|holding"
        r"|occup\w+|takes?|runs?|running|share[sd]?|sits?)\b[^,;]{0,30}\b(?:card|gpu|memory|it|there)\b"
        r"|\b(?:card|gpu)\b[^,;]{0,30}\b(?:used|occupied|shared|taken) by (?:other|another|some)\w*",
        ("gpu.foreign_share=0.2", "balance.foreign_low_share=0.2"),
    ),
    (
        r"\b(?:only|just) (?:my|this|our|the training|one)\b[^,;]{0,16}\b(?:process|job|program)"
        r"|\b(?:nobody|no ?one|nothing) else\b|\bempty (?:card|gpu)|\bcard is (?:empty|mine|free)",
        ("gpu.process_rows=1", "gpu.foreign=0 B", "balance.foreign_low_share=0"),
    ),
    (
        r"\b(?:several|many|multiple|\d+|each|all) (?:of )?(?:my |our |own |the )?(?:worker|python|server|web|uvicorn"
        r"|gunicorn|celery)?(?: worker)? ?(?:process|processes|workers|instances|copies)\b[^,;]{0,40}"
        r"\b(?:card|gpu|gigabytes|gb|model)\b",
        ("gpu.process_rows=3", "gpu.same_program_rows=3", "gpu.small_rows=0"),
    ),
    (r"\bcpu[- ]?offload\w*|\boffload\w*[^,;]{0,24}\b(?:cpu|ram|host)", ("optimizer.offload=cpu",)),
    (
        r"\bappend\w*[^,;]{0,40}\b(?:list|dict|array|buffer)|\bcollect\w*[^,;]{0,24}\b(?:outputs|predictions|features"
        r"|embeddings|logits|results)|\bkeep\w*[^,;]{0,24}\b(?:outputs|predictions|features|logits)",
        ("code.appends_outputs=true",),
    ),
    (
        r"\b(?:loss|losses)\b ?\+= ?\w+|\+= ?(?:the )?loss\b|\b(?:sum|add|accumulat|averag)\w*[^,;]{0,20}\b(?:the )?loss"
        r"(?:es)?\b(?! scal)|\brunning (?:average|sum|total|mean)[^,;]{0,16}\bloss",
        ("code.loss_accumulated=true",),
    ),
    (r"\bwithout compute_metrics", ("eval.compute_metrics=true",)),
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
        r"\b(?:new|updat\w*|upgrad\w*|chang\w*|latest)\b[^,;]{0,20}\bdrivers?\b|\bdriver (?:updat|upgrad|chang)\w*",
        ("history.changed=driver",),
    ),
    (
        r"\b(?:after|since)\b[^,;]{0,20}\b(?:updat|upgrad)\w+(?![^,;]{0,20}driver)|\b(?:worked|ran|fitted) (?:fine )?"
        r"(?:with|on|in) (?:the )?(?:version|v?\d+\.\d)|\bnewer? version|\bpip install -u\b|\bdowngrad\w+",
        ("history.changed=library",),
    ),
    (
        r"\beven (?:with|at) (?:an? )?batch(?: ?size)?(?: of)?(?: one| ?1)\b",
        ("trial.smaller_batch=same",),
    ),
    (
        r"\b(?:smaller|half|lower|reduc\w+|halv\w+)[^,;]{0,20}\b(?:batch\w*|rows|length)[^,;]{0,30}\b(?:same|not (?:help|move"
        r"|change)|does ?n[o']t (?:help|move|change)|no (?:help|difference|effect)|also fails|fails too|anyway)",
        ("trial.smaller_batch=same",),
    ),
    (
        r"\b(?:smaller|half|lower|reduc\w+|halv\w+)[^,;]{0,20}\b(?:batch\w*|rows|length)[^,;]{0,30}\b(?:works|runs|fits|helps"
        r"|passes|is fine|solves)|\bbatch(?: ?size)?(?: of)? \d+ (?:works|runs|fits|is fine|passes)",
        ("trial.smaller_batch=runs",),
    ),
    (r"\bfrom scratch\b[^,;]{0,30}\b(?:works|runs|fits|is fine|passes)", ("resume.on=true",)),
    (r"\bfresh (?:start|run)s?\b[^,;]{0,20}\b(?:work|run|fit|pass|fine)\w*", ("resume.on=true",)),
    (
        r"\b(?:next|second|each|every|new) (?:run|trial|fold|cell|try|call)\b[^,;]{0,40}\b(?:higher|more|fails|starts"
        r"|oom|out of memory)|\bre-?run\w*[^,;]{0,16}\bcell|\bsame (?:notebook|session|kernel|process)\b",
        ("oom.repeats_same_allocated=true",),
    ),
    (
        r"\bone (?:card|gpu) (?:is )?full[^;]{0,40}\b(?:others?|rest)\b|\bonly (?:the )?(?:first|last|one) (?:card|gpu)"
        r"[^,;]{0,10}\bfull|\buneven(?:ly)?\b|\bimbalance\w*",
        ("gpu.imbalance=0.6",),
    ),
    (
        r"\bfails? on (?:several|multiple|two|four|eight|many|2|4|8)\b|\bmulti-?gpu\b"
        r"|\b(?:several|multiple|two|four|eight|[248]) (?:gpus|cards|ranks)\b",
        ("dist.world_size=2",),
    ),
    (
        r"\b(?:until|without|no|missing) (?:an? |the )?(?:torch_)?dtype\b|\bloads? (?:it )?in (?:fp32|float32|full precision)",
        ("train.base_dtype=fp32",),
    ),
    (r"\bwithout (?:vllm|sglang|the engine)\b", ("gen.colocated_engine=true",)),
    (r"\bretain_graph|\bcreate_graph", ("code.retain_graph=true",)),
    (r"\breduce-overhead|\bcuda ?graphs?\b|\bwithout graphs?\b", ("compile.cudagraphs=true",)),
)
