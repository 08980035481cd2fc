"""`python -m benchmarks [inverse|peers|large|evaluation|tuning]`: all of them if none is named."""

import json
import sys

from benchmarks import evaluation, inverse, large, peers, tuning
from benchmarks._machine import describe

ALL = {"inverse": inverse, "peers": peers, "large": large, "evaluation": evaluation, "tuning": tuning}

print(json.dumps(describe()), flush=True)
for name in sys.argv[1:] or ALL:
    if name not in ALL:
        sys.exit(f"there is no benchmark {name!r}: choose from {', '.join(ALL)}")
    ALL[name].main([])
