-- Tidegate: takes tokens from limits whose state is on this server, by this server's clock.
--
-- One request:    KEYS  1 the key of the state: the guide has its form, which differs if the limit's key has a "{"
--   ARGV  1 form of the reply: "decision" (below); "bytes" or "text", the stored state (for the npm package)
--         2 deadline, by the server's clock in ms: after it nothing is done and the reply is "late <clock>". "": none
--         3 count, tokens   4 rate, tokens per period   5 period, ms   6 capacity, tokens
--   and, each of them optional from here on ("" is the default):
--         7 "take" (default), "check", "give", "charge", "block" (its count is a length in ms) or "reset"
--         8 tokens that may be owed afterwards: a number, or "unlimited"; default 0. Of "block": what a request for one
--           token takes of this key, default 1; of one of n shards 1 / n
--         9 start of the window grid, ms, or "first request": makes the limit a fixed window; default: a token bucket
--        10 now, ms: replaces the server's clock
-- Several requests, in order:    KEYS  a key for each step, in order; a key may occur several times
--   ARGV  1 and 2 as above   3 "many"   4 now, or ""   5 number of rules; then each rule as 3 to 9 above; then runs:
--         keys, times, rule           these keys, each so many times, by one rule
--         keys, "all", rule, rule, …  these keys, each by its own rule, not "reset": all or none; counts on one key add up
--
-- Reply of "decision", a list for one request, a list of lists for several; numbers are decimals of 17 digits:
--   1 ok: 1 or 0   2 value, tokens (below 0: owed)   3 ts, ms that the value belongs to   4 retryAt, ms, or ""
--   5 resetAt, ms   6 "", "exceeds capacity" or "exceeds clock"   7 now, ms
-- In a "many" with "all" where one member is denied, the others report what a "check" would.
-- Errors: a key that holds no state, as does each step of "many" about it; a wrong argument, before anything is read.
--
-- The state is 16 bytes: value, then ts, as little-endian doubles. The arithmetic is that of crates/core, bit for bit.
local argv, keys, call, floor, ceil = ARGV, KEYS, redis.call, math.floor, math.ceil
local pack, text, END, SKEW, ULPS = struct.pack, string.format, 4503599627370496, 3600000, 2 ^ -51
local many, form, deadline = argv[3] == 'many', argv[1], tonumber(argv[2])
local passed = tonumber(argv[many and 4 or 10])
local now = passed and floor(passed)
if deadline or not passed then
  local time = call('TIME')
  local clock = time[1] * 1000 + floor(time[2] / 1000)
  if deadline and clock > deadline then return text('late %.0f', clock) end
  now = now or clock
end

-- The usual requests, up to the first that needs more: each takes from one limit, without debt, by the server's clock, as
-- `step` and `write` below compute it. They are most of what a server does, so this makes no function: Lua would allocate
-- it at every call. `+ 0` takes less time than `tonumber`. `parts` is what the first `done` keys held, as in the reply; the
-- run of the next one begins in ARGV at `p`, and has the keys after the first `past`.
local parts, granted, done, past, p = many and {}, 0, 0, 0, nil
if form == 'bytes' and not passed then
  p = many and 7 * argv[5] + 6
  while not many or argv[p + 1] == '1' do
    local r, last = many and 7 * argv[p + 2] - 1 or 3, many and past + argv[p] or 1
    local op, owed, start = argv[r + 4], argv[r + 5], argv[r + 6]
    if op and op ~= 'take' or owed and owed ~= '' then break end
    local count, rate, period, capacity = argv[r] + 0, argv[r + 1] + 0, argv[r + 2] + 0, argv[r + 3] + 0
    if start and start ~= 'first request' then start = tonumber(start) end
    while done < last do
      local key = keys[done + 1]
      local held, v, t = redis.pcall('GET', key), capacity, now
      if held then
        if #held ~= 16 then break end
        v, t = struct.unpack('<dd', held)
        if not (t - now <= SKEW and v - v == 0 and t - t == 0) then break end
      end
      local grid = start == 'first request' and t or start
      if grid then
        local own, index = start == 'first request' and now > t, floor((now - grid) / period)
        local windows = index - floor((t - grid) / period)
        if windows > 0 or not held then v, t = v + rate * windows, grid + index * period end
        -- The next request on a full key opens a window.
        if own and (v >= capacity or t > now) then t = now end
      elseif now > t then
        v, t = v + ((now - t) * rate) / period, now
      end
      if not (v < capacity) then v = capacity end
      local after = v - count
      if after >= 0 and capacity >= count then
        local at, back
        if grid then
          if start == 'first request' then grid = t end
          local windows = ceil((capacity - after) / rate)
          at, back = ceil(grid + (floor((t - grid) / period) + windows) * period), rate * windows
        else
          at = ceil(t + (capacity - after) * (period / rate))
          back = ((at - t) * rate) / period
        end
        if not (count > 0 and after < capacity and at > now and at < END and after + back >= capacity) then break end
        call('SET', key, pack('<dd', after, t), 'PXAT', text('%d', at))
        granted = granted + 1
      end
      local part = held and '1' .. held or '0'
      if not many then return pack('<dd', now, granted) .. part end
      done, parts[done + 1] = done + 1, part
    end
    if done < last then break end
    past, p = last, p + 3
  end
  if many and not argv[p] then return pack('<dd', now, granted) .. table.concat(parts) end
end

-- (v, t), or no state, with what has come back by `at`; and whether it was none.
local function refill(v, t, at, rate, period, capacity, start)
  local fresh = not v or t - at > SKEW
  if fresh then
    v, t = capacity, start and start ~= 'first request' and start + floor((at - start) / period) * period or at
  elseif start then
    local own, grid = start == 'first request' and at > t, start == 'first request' and t or start
    local index = floor((at - grid) / period)
    local windows = index - floor((t - grid) / period)
    if windows > 0 then v, t = v + rate * windows, grid + index * period end
    if own and (v >= capacity or t > at) then t = at end
  elseif at > t then
    v, t = v + ((at - t) * rate) / period, at
  end
  if not (v < capacity) then v = capacity end
  return v, t, fresh
end

-- The first ms after `now`, where it is not yet so, at which (v, t), refilled, is `count` above `least`. nil: the clock
-- ends before. The closed form is where the search starts.
local function first_ms(v, t, count, least, rate, period, capacity, start)
  local grid, step, from, last, at, index = start == 'first request' and t or start, 1
  if grid then
    index = floor((t - grid) / period)
    from, last = floor((now - grid) / period) - index, floor((END - grid) / period) - index
    if from < 0 then from = 0 end
    at = (count + least - v) / rate
  else
    from, last, at = floor(t > now and t or now), END, t + (count + least - v) * (period / rate)
  end
  local function enough(n)
    local x = start and v + rate * n or v + ((n - t) * rate) / period
    return (x < capacity and x or capacity) - count >= least
  end
  if not (from < last) then return nil end
  at = ceil(at)
  if not (at > from) then at = from + 1 end
  if at > last then at = last end
  if enough(at) then
    while at - step > from and enough(at - step) do at, step = at - step, step * 2 end
    if at - step > from then from = at - step end
  else
    repeat
      if at >= last then return nil end
      from, at, step = at, at + step, step * 2
      if at > last then at = last end
    until enough(at)
  end
  while at - from > 1 do
    local middle = from + floor((at - from) / 2)
    if middle <= from or middle >= at then break end
    if enough(middle) then at = middle else from = middle end
  end
  return grid and ceil(grid + (index + at) * period) or at
end

-- The first ms from which on a state, which amounts to `value` now, is as good as none.
local function full_at(value, v, t, rate, period, capacity, start)
  if value < capacity then return first_ms(v, t, 0, capacity, rate, period, capacity, start) or END end
  return math.min(ceil(t > now and t or now), END)
end

-- Tokens of a request for one, or of all there are where that is less.
local function one_token(capacity, least) return math.min(least < 0 and -least or 1, capacity) end

-- The numbers of a key with (v, t), or without a state, that is blocked for `ms`; and whether they differ.
local function block(v, t, ms, rate, period, capacity, least, start)
  local held, at, fresh = refill(v, t, now, rate, period, capacity, start)
  local till, one = (at > now and at or now) + ms, one_token(capacity, least)
  -- A fresh key is full, so only a state can deny.
  if not fresh and refill(v, t, till - 1, rate, period, capacity, start) < one then return held, at, false end
  v, t = held, at
  local ts, target, all, before = t, one, nil, nil
  if start then
    local windows
    target = rate < capacity and rate or capacity
    if target < one then target = one end
    if start == 'first request' then
      windows = ceil(ms / period)
      local unblocked = refill(v, t, till, rate, period, capacity, start)
      if not (target < unblocked) then target = unblocked end
      ts = till - windows * period
    else
      windows = floor((till - 1 - start) / period) + 1 - floor((t - start) / period)
    end
    all, before = rate * windows, rate * (windows - 1)
  else
    all, before = ((till - t) * rate) / period, ((till - 1 - t) * rate) / period
  end
  local ulps, value = (all + target) * ULPS, target - all
  if value + all < one then value = value + ulps end
  if value + before >= one then value = value - ulps end
  return value, ts, true
end

-- What a request does to (v, t), or to no state: whether it is granted, the two numbers afterwards, whether they differ
-- from the stored ones, and why no wait helps.
local function step(v, t, op, count, rate, period, capacity, least, start)
  if op == 'block' then return true, block(v, t, count, rate, period, capacity, least, start) end
  local fresh
  v, t, fresh = refill(v, t, now, rate, period, capacity, start)
  if op == 'take' or op == 'check' then
    if capacity - count < least then return false, 0, now, false, 'exceeds capacity' end
    local after = v - count
    if after < least then return false, v, t end
    -- A debt must be payable before the clock ends.
    if after < 0 and not first_ms(after, t, 0, 0, rate, period, capacity, start) then
      return false, v, t, false, 'exceeds clock'
    end
    return true, after, t, count > 0
  elseif op == 'give' then
    v = v + count
    return true, v < capacity and v or capacity, t, count > 0 and not fresh
  end
  return true, v - count, t, count > 0
end

-- What a key holds: "0" nothing; "1", value, ts and the bytes; "2" to "4" something that is not a state.
local function read(key)
  local held = redis.pcall('GET', key)
  if not held then return '0' end
  -- Any other error, such as that of a user without the right to GET, is raised.
  if type(held) ~= 'string' then return held.err:find('WRONGTYPE', 1, true) and '4' or call('GET', key) end
  if #held ~= 16 then return '2' end
  local v, t = struct.unpack('<dd', held)
  if v - v == 0 and t - t == 0 then return '1', v, t, held end
  return '3'
end

-- A state expires when it is full. A clock that is passed in does not run as the server's does: it gets an hour more.
local function write(key, v, t, _, _, rate, period, capacity, _, start)
  local at = full_at(v, v, t, rate, period, capacity, start)
  if passed then call('SET', key, pack('<dd', v, t), 'PX', at - now + SKEW)
  elseif at > now then call('SET', key, pack('<dd', v, t), 'PXAT', at)
  else call('DEL', key) end
end

-- The reply of "decision" to a request on (v, t) from which `step` returned the rest.
local function decision(v, t, ok, value, ts, changed, reason, op, count, rate, period, capacity, least, start)
  local known, retry, reset = changed or v and not (t - now > SKEW), nil, now
  if not ok and not reason then
    retry = first_ms(v, t, count, least, rate, period, capacity, start)
    reason = not retry and 'exceeds clock'
  elseif op ~= 'block' and ok and value < 0 then
    retry = first_ms(value, ts, 0, 0, rate, period, capacity, start)
  end
  if changed then v, t = value, ts end
  if op == 'block' then retry = first_ms(v, t, one_token(capacity, least), 0, rate, period, capacity, start) end
  if known and reason ~= 'exceeds capacity' then reset = full_at(value, v, t, rate, period, capacity, start) end
  return {
    ok and 1 or 0, text('%.17g', value), text('%.17g', ts), retry and text('%.17g', retry) or '',
    text('%.17g', reset), reason or '', text('%.17g', now),
  }
end

-- What a key held before, in the forms for the package.
local function shown(found, v, t, held)
  if form == 'bytes' then return held and '1' .. held or found end
  return held and text(';1 %.17g %.17g', v, t) or ';' .. found
end
local function head(granted) return form == 'bytes' and pack('<dd', now, granted) or text('%.17g %.17g', now, granted) end

local function corrupt(found)
  local what = found == '2' and 'a state must be 16 bytes' or found == '3' and 'a state must be two finite doubles'
    or found == '4' and 'a state must be a string' or 'another member of the call is about one'
  return redis.error_reply('TIDEGATE corrupt state: ' .. what)
end

-- A request from another language is checked before anything is read. The package has checked its own.
if form ~= 'bytes' and form ~= 'text' then
  local wrong, MOST, at = nil, 2 ^ 40, many and 4 or 10
  local function expect(i, name, expected, ok)
    local got = argv[i] and '"' .. argv[i] .. '"' or 'none'
    if not ok and not wrong then wrong = name .. ' must be ' .. expected .. '; got ' .. got end
  end
  local function within(i, least, most) local n = tonumber(argv[i] or '') return n and n >= least and n <= most end
  local function integer(i, least, most) return within(i, least, most) and tonumber(argv[i]) % 1 == 0 end
  local function empty(i) return (argv[i] or '') == '' end
  local TOKENS, LENGTH = 'tokens from 0 to 1099511627776', 'an integer of ms from 1 to 1099511627776'
  local CLOCK, OPS = 'ms from 0 to 4503599627370496, or empty', '|take|check|give|charge|block|reset|'
  expect(1, 'the form of the reply', 'decision', form == 'decision')
  expect(2, 'the deadline', CLOCK, argv[2] == '' or within(2, 0, END))
  expect(at, 'now', CLOCK, empty(at) or within(at, 0, END))
  if many then expect(5, 'the number of rules', 'an integer from 1', integer(5, 1, #argv)) end
  for i = many and 6 or 3, many and not wrong and 7 * argv[5] - 1 or 3, 7 do
    local op = empty(i + 4) and 'take' or argv[i + 4]
    expect(i + 4, 'the operation', 'take, check, give, charge, block or reset', OPS:find('|' .. op .. '|', 1, true))
    local blocks = op == 'block'
    expect(i, 'count', blocks and LENGTH or TOKENS, (blocks and integer or within)(i, blocks and 1 or 0, MOST))
    expect(i + 1, 'rate', 'tokens above 0 and up to 1099511627776', within(i + 1, 2 ^ -1074, MOST))
    expect(i + 2, 'period', LENGTH, integer(i + 2, 1, MOST))
    expect(i + 3, 'capacity', TOKENS, within(i + 3, 0, MOST))
    expect(i + 5, 'what may be owed', '"unlimited" or ' .. TOKENS,
      empty(i + 5) or argv[i + 5] == 'unlimited' or within(i + 5, 0, MOST))
    expect(i + 6, 'start', '"first request" or an integer of ms from -4503599627370496 to 4503599627370496',
      empty(i + 6) or argv[i + 6] == 'first request' or integer(i + 6, -END, END))
  end
  local run, left = many and not wrong and 7 * argv[5] + 6, #keys
  while run and (argv[run] or left > 0) and not wrong do
    local all = argv[run + 1] == 'all'
    expect(run, "a run's keys", 'an integer from 1, with those of all runs the number of keys', integer(run, 1, left))
    expect(run + 1, 'times', '"all" or an integer from 1', all or integer(run + 1, 1, MOST))
    local last = not wrong and all and run + 1 + argv[run] or run + 2
    for i = run + 2, last do expect(i, 'the rule', 'from 1 to the number of rules', integer(i, 1, argv[5] + 0)) end
    if not wrong then run, left = last + 1, left - argv[run] end
  end
  if wrong then return redis.error_reply('TIDEGATE ' .. wrong) end
end

-- A rule's arguments as numbers, in the order in which `step` takes them.
local function rule(count, rate, period, capacity, op, owed, start)
  local least = owed == 'unlimited' and -1 / 0 or -(tonumber(owed or '') or 0)
  op = op and op ~= '' and op or 'take'
  start = tonumber(start) or start == 'first request' and start or nil
  return op, tonumber(count), tonumber(rate), tonumber(period), tonumber(capacity), least, start
end

if not many then
  local key = keys[1]
  local op, count, rate, period, capacity, least, start = rule(unpack(argv, 3, 9))
  local found, v, t, held = read(key)
  if op == 'reset' then
    call('DEL', key)
    op, count, found, v, held = 'check', 0, '0', nil, nil
  elseif found > '1' then
    return form == 'decision' and corrupt(found) or head(0) .. shown(found)
  end
  local ok, value, ts, changed, reason = step(v, t, op, count, rate, period, capacity, least, start)
  if changed and op ~= 'check' then write(key, value, ts, op, count, rate, period, capacity, least, start) end
  if form == 'decision' then
    return decision(v, t, ok, value, ts, changed, reason, op, count, rate, period, capacity, least, start)
  end
  return head(ok and 1 or 0) .. shown(found, v, t, held)
end

local rules = {}
for i = 1, tonumber(argv[5]) do rules[i] = { rule(unpack(argv, 7 * i - 1, 7 * i + 5)) } end

-- By key: how it was found, what it held, the numbers at this point, and the rule that changed them last.
local found, before, value, ts, changed, replies = {}, {}, {}, {}, {}, {}
local function touch(key)
  if not found[key] then
    local held
    found[key], value[key], ts[key], held = read(key)
    before[key] = shown(found[key], value[key], ts[key], held)
  end
  return found[key] <= '1'
end

local function reply(...)
  if form == 'decision' then replies[#replies + 1] = decision(...) end
end

local function each(key, by, times)
  touch(key)
  if by[1] == 'reset' then
    found[key], value[key], changed[key] = '0', nil, by
    by = { 'check', 0, by[3], by[4], by[5], by[6], by[7] }
  end
  for _ = 1, times do
    if found[key] > '1' then replies[#replies + 1] = corrupt(found[key]) else
      local v, t = value[key], ts[key]
      local ok, after, at, differs, reason = step(v, t, unpack(by))
      if ok then granted = granted + 1 elseif form ~= 'decision' then break end
      if differs and by[1] ~= 'check' then value[key], ts[key], changed[key] = after, at, by end
      reply(v, t, ok, after, at, differs, reason, unpack(by))
    end
  end
end

local function all(n)
  local sound, ok, plans, sum = true, true, {}, {}
  for i = 1, n do sound = touch(keys[past + i]) and sound end
  for i = 1, n do
    local key, by = keys[past + i], rules[tonumber(argv[p + 1 + i])]
    if not sound then replies[#replies + 1] = corrupt(found[key]) else
      sum[key] = (sum[key] or 0) + by[2]
      local plan = { step(value[key], ts[key], by[1], sum[key], unpack(by, 3, 7)) }
      if plan[1] then granted = granted + 1 else ok = false end
      plans[i] = plan
      reply(value[key], ts[key], plan[1], plan[2], plan[3], plan[4], plan[5], by[1], sum[key], unpack(by, 3, 7))
    end
  end
  if not (sound and ok) then return end
  for i, plan in ipairs(plans) do
    local key, by = keys[past + i], rules[tonumber(argv[p + 1 + i])]
    if plan[4] and by[1] ~= 'check' then value[key], ts[key], changed[key] = plan[2], plan[3], by end
  end
end

p = p or 7 * #rules + 6
while argv[p] do
  local n, times = tonumber(argv[p]), tonumber(argv[p + 1])
  if times then
    for i = math.max(past, done) + 1, past + n do each(keys[i], rules[tonumber(argv[p + 2])], times) end
  else all(n) end
  past, p = past + n, p + (times and 3 or 2 + n)
end

for _, key in ipairs(keys) do
  local by = changed[key]
  if by and value[key] then write(key, value[key], ts[key], unpack(by)) elseif by then call('DEL', key) end
  changed[key] = nil
end
if form == 'decision' then return replies end
for i, key in ipairs(keys) do parts[i] = parts[i] or before[key] end
return head(granted) .. table.concat(parts)
