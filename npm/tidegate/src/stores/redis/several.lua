-- The way for all other programs: keys that go through several requests, and units.
--
-- What is stored, by key: value and ts (nil: nothing), how it was found, the spec that wrote last, whether it was reset.
local value, ts, found, stored, wrote, forgotten = {}, {}, {}, {}, {}, {}
for first = 1, #keys, 1000 do
  local last = first + 999
  if last > #keys then last = #keys end
  local got = call('MGET', unpack(keys, first, last))
  for j = 1, last - first + 1 do
    local i = first + j - 1
    stored[i] = got[j]
    found[i], value[i], ts[i] = read(got[j])
  end
end

local function number()
  p = p + 1
  return tonumber(argv[p - 1])
end

-- MGET reads a key of another type as none; so a key that is there after all has the wrong type.
local function settle_type(i)
  if found[i] == '0' and call('EXISTS', keys[i]) == 1 then found[i] = '4' end
end

local granted = 0
local k = 0
for _ = 1, number() do
  local many, steps = number(), number()
  local from = p
  p = p + steps
  for _ = 1, many do
    k = k + 1
    for at = from, from + steps - 1 do
      local s = specs[tonumber(argv[at])]
      if s[1] == 'r' then
        value[k], ts[k], wrote[k], forgotten[k] = nil, nil, s, true
      elseif found[k] <= '1' or forgotten[k] then
        for _ = 1, s[8] do
          local ok, v, t = apply(value[k], ts[k], s)
          if not ok then break end
          granted = granted + 1
          if v then value[k], ts[k], wrote[k] = v, t, s end
        end
      end
    end
  end
end

-- All shards of one limit as one pool: tokens are counted by what each shard lacks.
local function pool(shards, whole, shard)
  local op, count = whole[1], whole[7]
  local function known(i) return value[i] and not (ts[i] - now > SKEW) end
  -- What all shards lack at t; with `each`, as if each held that much now.
  local function missing(t, each)
    local sum, real = 0, now
    for _, i in ipairs(shards) do
      local lacks = 0
      if each then
        local _, from = refill(value[i], ts[i], shard)
        now = t
        lacks = shard[4] - (refill(each, from, shard))
      elseif known(i) then
        now = t
        lacks = shard[4] - (refill(value[i], ts[i], shard))
      end
      now = real
      sum = sum + lacks
    end
    return sum
  end
  local function even(all) return shard[4] - all / #shards end
  local lacking = missing(now)
  local function spread(all)
    local writes = {}
    for _, i in ipairs(shards) do
      local _, t = refill(value[i], ts[i], shard)
      writes[#writes + 1] = { i, even(all), t, shard }
    end
    return true, writes
  end
  if op == 't' or op == 'c' then
    if whole[4] - count < whole[5] then return false end
    local after = (whole[4] - lacking) - count
    if after < whole[5] then return false end
    if after < 0 then
      local left
      if count > 0 then left = whole[4] - missing(END, even(lacking + count)) else left = whole[4] - missing(END) end
      if not (now < END and left >= 0) then return false end
    end
    if op == 'c' or not (count > 0) then return true end
    return spread(lacking + count)
  elseif not (count > 0) then
    return true
  elseif op == 'g' then
    local any = false
    for _, i in ipairs(shards) do any = any or known(i) end
    if not any then return true end
    local less = lacking - count
    return spread(less > 0 and less or 0)
  end
  return spread(lacking + count)
end

local function better(a, b, s)
  local i = (refill(value[b], ts[b], s)) > (refill(value[a], ts[a], s)) and b or a
  local ok, v, t = apply(value[i], ts[i], s)
  return ok, v and { { i, v, t, s } }
end

-- Reads one member and says which keys it is about, and what it would do.
local function member()
  local kind = argv[p]
  p = p + 1
  if kind == 'k' then
    local i, s = number(), specs[number()]
    return { i }, function()
      local ok, v, t = apply(value[i], ts[i], s)
      return ok, v and { { i, v, t, s } }
    end
  end
  local a, b, pair, shards, whole, shard
  if kind ~= 'p' then a, b, pair = number(), number(), specs[number()] end
  if kind ~= 'b' then
    shards = {}
    local many, from = number(), nil
    if argv[p] == '' then
      from = tonumber(argv[p + 1])
      p = p + 2
    end
    for i = 1, many do shards[i] = from and from + i - 1 or number() end
    whole, shard = specs[number()], specs[number()]
  end
  return shards or { a, b }, function()
    if pair then
      if whole and whole[4] - whole[7] < whole[5] then return false end
      local ok, writes = better(a, b, pair)
      if ok or not whole then return ok, writes end
    end
    return pool(shards, whole, shard)
  end
end

for _ = 1, number() do
  local plans, sound, all, yes = {}, true, true, 0
  for m = 1, number() do
    local about, plan = member()
    plans[m] = plan
    for _, i in ipairs(about) do
      settle_type(i)
      if found[i] > '1' then sound = false end
    end
  end
  if sound then
    local writes = {}
    for m = 1, #plans do
      local ok, what = plans[m]()
      all = all and ok
      if ok then yes = yes + 1 end
      for _, w in ipairs(what or {}) do writes[#writes + 1] = w end
    end
    granted = granted + yes
    if all then
      for _, w in ipairs(writes) do value[w[1]], ts[w[1]], wrote[w[1]] = w[2], w[3], w[4] end
    end
  end
end

local parts = {}
for i = 1, #keys do
  local s = wrote[i]
  if not s then
    settle_type(i)
  elseif value[i] then
    local was = found[i]
    local is = keep(keys[i], value[i], ts[i], s, forgotten[i] and '1' or was)
    if is == '4' then found[i] = is end
  else
    call('DEL', keys[i])
  end
  tell(parts, found[i], stored[i])
end
return answer(granted, parts)
