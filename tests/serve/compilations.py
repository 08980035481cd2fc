"""`python -m tests.serve.compilations MODEL`: print which kernels are compiled after a service is ready, as JSON."""

import gc
import json
import sys

from numba.core.registry import CPUDispatcher

from tests.serve.running import serving


def compiled():
    """Return every kernel with every signature that this process has of it."""
    dispatchers = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
    return {f"{each.py_func.__qualname__}{signature}" for each in dispatchers for signature in each.signatures}


def questions(items, users):
    """Yield paths and bodies: every endpoint, with every field that may take another way through the model."""
    whos = [{"history": items[3:6]}, {"history": []}, {"history": {str(item): 2.5 for item in items[:3]}}]
    whos += [{"history": items}, {"history": ["unknown"]}, {"user": users[0]}]
    whos += [{"history": [{"item": item, "at": at} for at, item in enumerate(items[:4])]}]
    fields = [{}, {"k": 1}, {"k": 1000}, {"allow": items[:20]}, {"deny": items[:3]}, {"exclude_seen": False}]
    dials = [{"xi": 0.5}, {"item_norm": 0.5}, {"propensity": 0.5}, {"fading": 0.5}, {"freshness": 0.5}]
    for who in whos:
        for more in (*fields, *dials, {"explain": True}, {"explain": True, "item_norm": 0.5, "allow": items[:20]}):
            yield "/v1/recommend", who | more
        for more in (*fields, {"xis": [0.1, 0.9]}, {"item_norms": [0.0, 0.5]}):
            yield "/v1/path", who | more
        yield "/v1/explain", who | {"item": items[7]}
    for more in (*fields, *dials):
        yield "/v1/recommend/batch", {"users": users[:20]} | more
        yield "/v1/recommend/batch", {"histories": [who["history"] for who in whos if "history" in who] * 5} | more


def main(folder):
    with serving(folder) as client:
        ready = compiled()
        items = [entry["item"] for entry in client.get("/v1/items", params={"limit": 1000}).json()["items"]]
        statuses = {}
        for path, body in questions(items, list(range(1000, 1080))):
            status = client.post(path, json=body).status_code
            statuses[status] = statuses.get(status, 0) + 1
        for path in (f"/v1/similar/{items[0]}", "/v1/items?q=star", f"/v1/items/{items[0]}", "/v1/model"):
            client.get(path)
        sys.stdout.write(json.dumps({"late": sorted(compiled() - ready), "statuses": statuses}))


if __name__ == "__main__":
    main(sys.argv[1])
