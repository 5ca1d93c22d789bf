"""Takes a token of the limit "api" of one user, which services in other languages take from too."""
import os
import sys

import redis

client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"), socket_timeout=0.25)
with open(os.environ.get("TIDEGATE_LUA", "tidegate.lua"), encoding="utf8") as file:
    script = client.register_script(file.read())


def limit(user, count=1, rate=10, period=60_000, capacity=10):
    """Whether `count` tokens are granted, the tokens left, and the ms to wait (None: no wait helps, or none is needed)."""
    args = ["decision", "", count, rate, period, capacity]
    prefix = "tidegate:{}" if "{" in user else "tidegate:"
    ok, value, _ts, retry_at, _reset_at, _reason, now = script(keys=[f"{prefix}api:{user}"], args=args)
    wait = int(float(retry_at) - float(now)) if retry_at else None
    return ok == 1, max(int(float(value)), 0), wait


if __name__ == "__main__":
    print(*limit(sys.argv[1]))
