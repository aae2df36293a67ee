"""The words in which people tell what they saw: places of a run, growth, good and bad ends.

during evaluation, about 300 samples in, it creeps up
training is fine; it dies when the checkpoint is written
somebody else's job sits on the same card
"""

from __future__ import annotations

# What a clause says went well; a place in such a clause is not where it failed.
GOOD = (
    r"\b(?:fine|fits?|fitted|works?|worked|runs?(?! (?:out|into))|ran(?! (?:out|into))"
    r"|pass(?:es|ed)?|succe\w+|ok(?:ay)?|good|completes?|completed|finish\w*|no (?:problem"
    "|issue)s?|goes (?:well|through)|went (?:well|through)|at most|not (?:fail|crash|grow"
    r"|affected)\w*|never (?:fail|crash)\w*|enough)\b"
)
BAD = (
    r"\b(?:fail\w*|crash\w*|die[sd]?|dying|dead|kill\w*|oom\w*|out of memory|runs? out|ran out"
    r"|run into|runs into|error\w*|abort\w*|explod\w*|blow\w*|breaks?|broke"
    r"|does ?n[o']t (?:fit|work|run)|stops?|can ?not|too (?:much|big|large)|exceed\w*|only"
    r"|occurs?|happens?|(?<!no )memory (?:problem|issue)s?|never (?:works|fits|runs)"
    r"|not (?:fit|work|run)\w*)\b"
)
# Place of the run -> words; the first that fits a clause counts.
PLACES = (
    (
        "resume",
        (
            r"\bresum\w+|\bload_(?:state|checkpoint)\w*|\bcontinu(?:e|ing) from"
            r"|\brestart\w* from|\brestor(?:e|ing)\b"
        ),
    ),
    (
        "save",
        (
            r"\bsav(?:e|es|ed|ing)\b|\bcheckpoint (?:is|was|gets) (?:being )?(?:written"
            r"|saved)|\bwrit(?:e|es|ing|ten)\b[^,;]{0,24}\bcheckpoint"
            r"|\bcheckpointing to disk|\bsave_\w+|\bstate[_ ]dict"
        ),
    ),
    (
        "merge",
        (
            r"\bmerg(?:e|es|ed|ing)\b|\bconvert(?:s|ed|ing)?\b[^,;]{0,20}\b(?:weights"
            "|model|adapter)"
        ),
    ),
    (
        "eval",
        (
            r"\beval\w*|\bvalidat\w*|\bvalidation\w*|\bval(?:[_ ](?:loop|step|epoch|set"
            r"|loss))\b|\btest(?:ing| set| loop| phase)\b|\bcompute_metrics"
            r"|\bpredict(?:ion|ing)\b"
        ),
    ),
    (
        "optimizer",
        r"\boptimi[sz]er(?:'s)?[ .]?(?:step|update)?|\boptim\.step|\badam (?:step|states?)",
    ),
    (
        "backward",
        r"\bback(?:ward|prop\w*)\b",
    ),
    (
        "graph-capture",
        r"\bcaptur\w+\b[^,;]{0,20}\bgraphs?|\bgraph capture",
    ),
    (
        "serve-start",
        (
            r"\b(?:service|server|engine|vllm|sglang|tgi|api"
            r"|pod)\b[^,;]{0,30}\b(?:start\w*|boot\w*|launch\w*|init\w*|warm\w*)"
            r"|\bstart\w*[^,;]{0,20}\b(?:server|engine|vllm|sglang)|\bprofil\w+ run"
        ),
    ),
    (
        "serve",
        r"\b(?:serving|requests?|under load|concurrent (?:users|requests))\b",
    ),
    (
        "generate",
        (
            r"\bgenerat\w*|\binference|\binferr?ing\b|\bsampling\b|\bdecod\w+|\bchat\w*"
            r"|\bprompts?\b|\bpredict\b"
        ),
    ),
    (
        "load",
        (
            r"\bload(?:s|ed|ing)?\b|\bfrom_pretrained|\bmodel\.(?:to|cuda)\b|\b(?:model"
            "|weights) (?:is|was|gets|are|being)(?: being)? (?:moved|loaded|put|placed"
            r"|sent|copied)|\bput(?:s|ting)? the model|\bmov(?:e|es|ing) the model"
            r"|\bbefore (?:the )?(?:first step|training|any step)|\bstart-?up\b"
            r"|\binitiali[sz]\w+"
        ),
    ),
    (
        "loss",
        r"\b(?:in|at|computing|calculating) (?:the )?loss\b|\bcross[_ ]entropy|\blogits\b",
    ),
    (
        "forward",
        (
            r"\bforward\b|(?<!as the )\btrain(?:ing)?\b(?! (?:loss|set|data|samples?|file"
            r"|script|ends?|has|is over))|\b(?:first|second|later) (?:step|batch"
            r"|iteration)|\bstep \d|\biterations? \d|(?<!last )(?<!final )\bepochs?\b"
        ),
    ),
)
GROWS = (
    r"\b(?:creep\w*|climb\w*|grow(?:s|ing|th|n)?|grew"
    r"|increas\w+(?! +(?:the |my |our )?\w*(?:batch|size|length|limit|number|rank|worker))"
    r"|ris(?:es|ing|e)\b|rose"
    r"|leak\w*|accumulates?|accumulated|go(?:es|ing) up|went up|build(?:s|ing)? up|add(?:s"
    r"|ing)? up|piles? up|higher and higher|more and more|swell\w*|balloon\w*|ramp\w*"
    r"|inflat\w+|more (?:with|after|per|in|on|for)? ?(?:every|each))\b"
)
FLAT = (
    r"\b(?:flat|stable|steady(?!,? (?:\w+ )?(?:increas|grow|ris|climb|leak))|constant\w*"
    r"|does ?n[o']t (?:grow|rise|increase|change)|not (?:grow|ris|increas)\w+|no (?:growth"
    r"|leak|increase)|never (?:grows|rises)|stays (?:the same|put)|unchanged)\b"
)
HOST = r"\b(?:ram|main memory|host memory|system memory|cpu memory|rss|swap)\b"
LATE = (
    r"\bafter (?:the )?(?:first )?epoch\b|\bafter (?:about |around |some |a few |several "
    r"|many |roughly |~ ?|the )?(?:\d[\d.,k]*|one|two|three|four|five|ten|tens|dozens|hundreds"
    r"|thousands|half|hours?|days?|last|first epoch)\b(?! ?(?:gb|gib|mb|mib|%))|\bhours? (?:in"
    r"|later)|\b(?:epoch|step|iteration)s? (?:[2-9]\d|\d{3,}|[2-9])\b|\b(?:2nd|3rd|\d{1,3}th"
    r"|second|third|fourth|fifth|later) epoch|\bafter (?:an? |one )(?:day|hour|night|week"
    r"|while)\b|\bovernight|\bhours? later|\bhalf(?:way)?\b[^,;]{0,12}\b(?:through|training"
    r"|epoch)|\blate(?:r)? (?:in|step|epoch)|\beventually|\bsometimes|\brandom\w*"
    r"|\bsporadic\w*|\bonce in a while|\bover time|\b\d+ (?:samples|steps|batches|epochs) in\b"
    r"|\b(?:first|second|third|some|two|several) epochs? (?:is|are|runs?|go|goes|work|works"
    "|pass|passes)"
)
EARLY = (
    r"\bfirst (?:\w+ )?(?:step|batch|iteration|forward|backward|pass)\b|\bstep (?:0|1|one)\b"
    r"|\bimmediately|\bright (?:away|at the start)|\bat once\b|\binstantly|\bstraight away"
    r"|\bfrom the (?:start|beginning)|\bbefore (?:the )?(?:first|any) (?:step|batch)"
    r"|\bas soon as\b"
)
BOUNDARY = (
    r"\b(?:end|finish|close|boundary) of (?:an?|the|each|every|one) (?:first |last )?epoch"
    r"|\bepoch end|\bafter (?:the|each|every) (?:first |last )?epoch|\bbetween epochs"
    r"|\bepoch to epoch|\bevery epoch"
)
