export const HELP: string = `Usage: tidegate-serve <policies.json> [options]

Makes decisions over HTTP from a file of policies, for services in any language (POST /v1/decide)
and for proxies (forward auth). GET /v1/openapi.json describes the API.

  --store <url>             memory (default), file:<folder>, redis://<host>:<port>, rediss://…,
                            postgres://<user>@<host>/<database>
  --migrate                 create or upgrade the schema of PostgreSQL first
  --host <address>          the address to listen on; default 127.0.0.1
  --port <port>             default 8080; 0 takes a free port, which the first line of the log shows
  --on-store-error <what>   while the store fails: deny (default), allow, or a fraction of the rate
                            above 0 and up to 1, in memory
  --timeout <time>          how long a decision waits for the store; default 250ms
  --grpc-port <port>        also serve Envoy's rate limit protocol there (gRPC); 0 takes a free port,
                            which the log shows. Needs the package @grpc/grpc-js
  --trust-proxy <proxies>   enables forward auth for proxies: how many are in front (1 to 100), or
                            their addresses and networks (10.0.0.0/8,2001:db8::/32)
  --client-header <name>    the header with the client's address; default x-forwarded-for
  --admin-token-file <file> the token of the routes for administrators, at least 16 characters; or
                            TIDEGATE_ADMIN_TOKEN. Without it these routes do not exist
  --console                 serve the console at /console; the password is that token. Needs the
                            package tidegate-console
  --body-limit <bytes>      default 65536
  --header-limit <bytes>    of all headers of a request; default 16384
  --shutdown-timeout <time> how long requests may take after SIGTERM; default 10s
  --log-requests            log each request
  --version                 the version

The log is on standard output: one JSON object per line. SIGHUP, or a change of the file, reads the
policies again; if they have mistakes, the old ones stay in force. SIGTERM and SIGINT end the service
after the requests in progress.

Exit codes: 0 ended by a signal; 1 the policies have mistakes, or the output cannot be written; 2 the
command line has mistakes.

Example:
  tidegate-serve policies.json --store redis://127.0.0.1:6379`;
