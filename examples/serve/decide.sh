#!/bin/sh
# Decides one call, and prints the decision and the rate-limit headers.
curl -s -i "${TIDEGATE_URL:-http://127.0.0.1:8080}/v1/decide" \
  -H 'Content-Type: application/json' \
  -d '{ "name": "api", "key": "203.0.113.7" }'
