-- HAProxy 2.5 or newer: decides each request by tidegate-serve.
local SERVICE = "http://127.0.0.1:8080/v1/forward-auth"
local FIELDS = { "ratelimit-policy", "ratelimit", "retry-after", "content-type" }

core.register_action("tidegate", { "http-req" }, function(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    headers[name] = {}
    for i, value in pairs(values) do
      headers[name][i + 1] = value
    end
  end
  -- The service gets no body: `expect` would be answered with 100, which is no decision.
  for _, name in ipairs({ "host", "content-length", "transfer-encoding", "expect" }) do
    headers[name] = nil
  end
  headers["x-forwarded-for"] = { txn.sf:src() }
  headers["x-forwarded-method"] = { txn.sf:method() }
  headers["x-forwarded-uri"] = { txn.sf:pathq() }

  local answer = core.httpclient():get({ url = SERVICE, headers = headers, timeout = 500 })
  local fields = {}
  for _, name in ipairs(FIELDS) do
    fields[name] = answer.headers and answer.headers[name] and answer.headers[name][0]
  end
  if answer.status == 200 then
    if fields["ratelimit"] then
      txn:set_var("txn.ratelimit_policy", fields["ratelimit-policy"])
      txn:set_var("txn.ratelimit", fields["ratelimit"])
    end
    return
  end
  -- A service that does not answer has the status 503 here.
  local reply = txn:reply({ status = answer.status, body = answer.body })
  for name, value in pairs(fields) do
    reply:add_header(name, value)
  end
  txn:done(reply)
end)
