#!/bin/sh
# Blocks a client, reads its state, and lets it in again.
on="--store ${TIDEGATE_STORE:-redis://127.0.0.1:6379} --policy policies.json"
npx tidegate block api 203.0.113.7 --for 15m $on
npx tidegate get api 203.0.113.7 --json $on
npx tidegate unblock api 203.0.113.7 $on
