export const HELP: string = `Usage: tidegate-replay <log...> (--policy <file> | --limit <limit> | --suggest) [options]

Reports what a limit would have done to the traffic in a log. It decides with the engine that a
server uses, on the log's clock.

The log: files in their order, - for standard input; gzip or not. Common and combined access logs,
one JSON object per line, or CSV with a header line.
  --format <format>   common, json or csv; default: by the first lines
  --time <field>      when a request arrived; default time, timestamp, ts, @timestamp and similar
  --cost <field>      the tokens that it takes; default: the policy's cost, or 1

The limits:
  --policy <file>     a policy document (JSON)
  --limit <limit>     "rate=10 period=1s capacity=20"; also kind=fixed_window, name, maxReserved,
                      start=first_request or a time. May be repeated: a request is granted if
                      all grant it
  --key <field>       the field that is the key; default: the policy's keys, or ip. Repeat it for
                      a key of several fields; none: all share one limit. In JSON, dots select
                      nested fields: req.headers.x-api-key
  --max-keys <n>      most keys held for each limit; default 1000000

The answer:
  --suggest           propose the tightest rate and capacity within the budget
  --budget <share>    the share of requests that may be denied, such as 0.1% (the default with
                      --suggest). Without --suggest: exit with 1 beyond it
  --period <time>     of a proposal without a limit: 1s, 5m, …; default 1m
  --json              the report as JSON
  --html <file>       the chart and the report as one page
  --svg <file>        only the chart
  --version           the version

Exit codes: 0 success; 1 more than --budget is denied; 2 the command line or a log has mistakes.

Example:
  tidegate-replay access.log --limit "rate=10 period=1m capacity=20" --html report.html`;
