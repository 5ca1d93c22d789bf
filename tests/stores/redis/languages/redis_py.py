"""Runs steps of the shared vectors by the script alone, with redis-py: from another language than the package's.

usage: script.py PORT SCRIPT, with a list of {"keys": [...], "args": [...]} as JSON on stdin. Prints the replies as JSON:
lists of texts and integers, {"error": message} for an error. After each call, the states of its keys: hexadecimal, or null.
"""
import json
import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
take = client.register_script(open(sys.argv[2], encoding="utf8").read())


def plain(value):
    if isinstance(value, Exception):
        return {"error": str(value)}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


done = []
for call in json.load(sys.stdin):
    try:
        reply = plain(take(keys=call["keys"], args=call["args"]))
    except redis.ResponseError as error:
        reply = plain(error)
    held = [client.get(key) for key in call["keys"]]
    done.append({"reply": reply, "held": [state and state.hex() for state in held]})
json.dump(done, sys.stdout)
