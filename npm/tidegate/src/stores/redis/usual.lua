-- The algebra where the state lives. Every line that computes is the core's, in its order of operations, on the same
-- doubles; the tests compare the two bit for bit.
--
-- ARGV: how to answer ("b": bytes, "t": text); "1" where every key goes through one request, once, and there are no
-- units; now in ms ("": the server's clock); then
--   specs   n, each: op, rate, period, capacity, floor ("": none), start ("": token bucket), count, repeats
--   runs    n, each: how many keys, how many specs, the specs that each of these keys goes through in turn;
--           the keys are taken from KEYS in order
--   units   n, each: how many members, and each member (all of them are carried out, or none)
--             "k" key spec | "p" how many keys, keys ("" and the first, where they follow each other), spec of the whole,
--             spec of a shard: all shards as one pool
--             "b" key key spec: the better of two shards | "s" a "b", and the "p" to ask where it denies
-- or, after "b", "2" and now, where every key is a token bucket that is taken from once:
--   runs    n, each: how many keys, rate, period, capacity, floor ("": none), count
-- The last of ARGV, of either form: the server's clock in ms after which nothing is done ("": none), since the caller has
-- been answered without it. Then the answer is "late" and that clock.
-- Answer: now, how many requests were granted, then for each key what was there before: 0 nothing, 1 and its 16
-- bytes, or 2 to 4 what is wrong with it.
local argv, keys = ARGV, KEYS
local call, floor, ceil, pack_state, unpack_state = redis.call, math.floor, math.ceil, struct.pack, struct.unpack
local END, SKEW = 4503599627370496, 3600000
local now, deadline = tonumber(argv[3]), tonumber(argv[#argv])
local passed = now ~= nil
if deadline or not passed then
  local time = call('TIME')
  local clock = time[1] * 1000 + floor(time[2] / 1000)
  if deadline and clock > deadline then return string.format('late %d', clock) end
  if not passed then now = clock end
end

-- The usual call, kept short because it is most of what a server does: takes from token buckets, one from each key. It
-- says what refill, apply, keep and full_at below say, for that alone.
if argv[2] == '2' then
  local got, parts, granted, last, p = call('MGET', unpack(keys)), {}, 0, 0, 5
  local n, unit, later = 0, 'PXAT', 0
  if passed then unit, later = 'PX', SKEW - now end
  for _ = 1, tonumber(argv[4]) do
    local many, rate, period = tonumber(argv[p]), tonumber(argv[p + 1]), tonumber(argv[p + 2])
    local capacity, least, count = tonumber(argv[p + 3]), tonumber(argv[p + 4]) or -1 / 0, tonumber(argv[p + 5])
    for i = last + 1, last + many do
      local state, v, from = got[i], capacity, now
      local found = state and '1' or '0'
      if state then
        if #state ~= 16 then
          found = '2'
        else
          local x, t = unpack_state('<dd', state)
          if x - x ~= 0 or t - t ~= 0 then
            found = '3'
          elseif t - now <= SKEW then
            if now > t then x = x + ((now - t) * rate) / period else from = t end
            v = x < capacity and x or capacity
          end
        end
      end
      local after = v - count
      if found <= '1' and capacity - count >= least and after >= least
        and (after >= 0 or (from < END and after + ((END - from) * rate) / period >= 0)) then
        granted = granted + 1
        if count > 0 then
          local at = ceil(from)
          if after < capacity then
            at = ceil(from + ((capacity - after) * period) / rate)
            if not (at > from) then at = ceil(from) + 1 end
            local step = 1
            while at < END and after + ((at - from) * rate) / period < capacity do at, step = at + step, step * 2 end
            if not (at < END) then at = END end
          end
          if at <= now and not passed then
            if state then call('DEL', keys[i]) elseif call('EXISTS', keys[i]) == 1 then found = '4' end
          else
            local packed, by = pack_state('<dd', after, from), string.format('%d', at + later)
            if state then
              call('SET', keys[i], packed, unit, by)
            elseif not call('SET', keys[i], packed, 'NX', unit, by) then
              found = '4'
            end
          end
        end
      elseif not state and call('EXISTS', keys[i]) == 1 then
        found = '4'
      end
      parts[n + 1] = found
      parts[n + 2] = found == '1' and state or '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
      n = n + 2
    end
    last = last + many
    p = p + 6
  end
  return pack_state('<dd', now, granted) .. table.concat(parts)
end

