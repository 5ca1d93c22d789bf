-- What one key goes through, and the way for programs in which every key goes through one request, once.
--
-- A spec: 1 op, 2 rate, 3 period, 4 capacity, 5 floor, 6 start, 7 count, 8 repeats.
local p = 5
local specs = {}
for i = 1, tonumber(argv[4]) do
  specs[i] = {
    argv[p], tonumber(argv[p + 1]), tonumber(argv[p + 2]), tonumber(argv[p + 3]),
    tonumber(argv[p + 4]) or -1 / 0, tonumber(argv[p + 5]), tonumber(argv[p + 6]), tonumber(argv[p + 7]),
  }
  p = p + 8
end

local function refill(v, t, s)
  local rate, period, capacity, start = s[2], s[3], s[4], s[6]
  if not v or t - now > SKEW then
    return capacity, start and start + floor((now - start) / period) * period or now
  end
  local x
  if start then
    local current = floor((now - start) / period)
    local windows = current - floor((t - start) / period)
    if windows <= 0 then return v < capacity and v or capacity, t end
    x, t = v + rate * windows, start + current * period
  else
    if now <= t then return v < capacity and v or capacity, t end
    x, t = v + ((now - t) * rate) / period, now
  end
  return x < capacity and x or capacity, t
end

-- Whether a debt is ever paid, before the clock ends.
local function payable(v, t, s)
  local rate, period, start = s[2], s[3], s[6]
  if start then
    local first = floor((t - start) / period)
    local none = floor((now - start) / period) - first
    local windows = floor((END - start) / period) - first
    return windows > (none > 0 and none or 0) and v + rate * windows >= 0
  end
  return (t > now and t or now) < END and v + ((END - t) * rate) / period >= 0
end

-- What one request answers on (v, t), and what it would write.
local function apply(v, t, s)
  local op, count = s[1], s[7]
  local rv, rt = refill(v, t, s)
  if op == 't' or op == 'c' then
    if s[4] - count < s[5] then return false end
    local after = rv - count
    if after < s[5] or (after < 0 and not payable(after, rt, s)) then return false end
    if op == 'c' or not (count > 0) then return true end
    return true, after, rt
  elseif op == 'g' then
    if not (count > 0) or not v or t - now > SKEW then return true end
    local x = rv + count
    return true, x < s[4] and x or s[4], rt
  elseif op == 'd' and count > 0 then
    return true, rv - count, rt
  end
  return true
end

-- Never before the first ms at which the state is full, and by rounding a few after it at the most: then it says no
-- more than no state does.
local function full_at(v, t, s)
  local rate, period, capacity, start = s[2], s[3], s[4], s[6]
  local latest = t > now and t or now
  if v >= capacity then return ceil(latest) end
  local step = 1
  if start then
    local first = floor((t - start) / period)
    local last = floor((END - start) / period) - first
    local least = floor((now - start) / period) - first + 1
    local windows = ceil((capacity - v) / rate)
    if least < 1 then least = 1 end
    if not (windows > least) then windows = least end
    while windows < last and v + rate * windows < capacity do windows, step = windows + step, step * 2 end
    if windows > last then return END end
    return start + (first + windows) * period
  end
  local at = ceil(t + ((capacity - v) * period) / rate)
  if not (at > latest) then at = ceil(latest) + 1 end
  while at < END and v + ((at - t) * rate) / period < capacity do at, step = at + step, step * 2 end
  return at < END and at or END
end

-- Keeps a state until it is full. `found`: 0 where there was nothing; then a key of another type, which MGET reads as
-- nothing, is left alone and told.
local function keep(key, v, t, s, found)
  local at = full_at(v, t, s)
  -- A clock that is passed in does not run as the server's does: it gets an hour more.
  local unit = 'PXAT'
  if passed then unit, at = 'PX', at - now + SKEW end
  if found ~= '0' then
    if at <= now and not passed then call('DEL', key) else call('SET', key, pack_state('<dd', v, t), unit, string.format('%d', at)) end
  elseif at <= now and not passed then
    if call('EXISTS', key) == 1 then return '4' end
  elseif not call('SET', key, pack_state('<dd', v, t), 'NX', unit, string.format('%d', at)) then
    return '4'
  end
  return found
end

local function answer(granted, parts)
  if argv[1] == 'b' then return pack_state('<dd', now, granted) .. table.concat(parts) end
  return string.format('now %.17g %.17g', now, granted) .. table.concat(parts)
end

-- Appends what a key held before to the answer.
local NONE = string.rep('\0', 16)
local function tell(parts, found, state)
  local n = #parts
  if argv[1] == 'b' then
    parts[n + 1], parts[n + 2] = found, found == '1' and state or NONE
  elseif found == '1' then
    parts[n + 1] = string.format(';1 %.17g %.17g', unpack_state('<dd', state))
  else
    parts[n + 1] = ';' .. found
  end
end

-- How a stored string reads: found, value, ts.
local function read(state)
  if not state then return '0' end
  if #state ~= 16 then return '2' end
  local v, t = unpack_state('<dd', state)
  if v - v == 0 and t - t == 0 then return '1', v, t end
  return '3'
end

if argv[2] == '1' then
  local got, parts, granted, k = call('MGET', unpack(keys)), {}, 0, 0
  local bytes = argv[1] == 'b'
  for _ = 1, tonumber(argv[p]) do
    local s = specs[tonumber(argv[p + 3])]
    for i = k + 1, k + tonumber(argv[p + 1]) do
      local state = got[i]
      local found, v, t = '0'
      if state then found, v, t = read(state) end
      if found <= '1' then
        local ok, x, at = apply(v, t, s)
        if ok then granted = granted + 1 end
        if x then
          found = keep(keys[i], x, at, s, found)
        elseif not state and call('EXISTS', keys[i]) == 1 then
          found = '4'
        end
      end
      if bytes then
        parts[2 * i - 1] = found
        parts[2 * i] = found == '1' and state or NONE
      else
        tell(parts, found, state)
      end
    end
    k = k + tonumber(argv[p + 1])
    p = p + 3
  end
  return answer(granted, parts)
end

