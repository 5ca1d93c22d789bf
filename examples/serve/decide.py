"""Calls the service before each request, with the standard library alone."""

import json
import os
from urllib.request import Request, urlopen

URL = os.environ.get("TIDEGATE_URL", "http://127.0.0.1:8080")


def decide(**body):
    """The decision; its `headers` are for the response to the client."""
    data = json.dumps(body).encode()
    request = Request(f"{URL}/v1/decide", data, {"Content-Type": "application/json"})
    with urlopen(request, timeout=5) as response:
        return json.load(response)


for _ in range(4):
    decision = decide(name="api", key="198.51.100.9")
    if decision["ok"]:
        print("200", decision["remaining"], "left")
    else:
        print("429", decision["headers"].get("Retry-After"), "s")  # None while the store fails
