-- Functions that any language can call: see the page on PostgreSQL. Times are ms since the Unix epoch.

-- The first integer ms after "now" at which a state holds "count" more than "floor_value"; NULL if that is after the latest
-- clock reading. The closed form is only an estimate, from which the search begins.
CREATE OR REPLACE FUNCTION tidegate.least_time(
  rate float8, period float8, capacity float8, start float8, value float8, ts float8, now float8, count float8,
  floor_value float8
) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  -- A step is 1 ms; or one window, counted from the one that the state is in.
  unit float8 := CASE WHEN start IS NULL THEN 1 ELSE period END;
  origin float8 := CASE WHEN start IS NULL THEN 0 ELSE tidegate.grid(start, ts)
    + floor((ts - tidegate.grid(start, ts)) / period) * period END;
  least_no float8 := CASE WHEN start IS NULL THEN GREATEST(ts, now) ELSE GREATEST(0, floor((now - origin) / period)) END;
  last float8 := CASE WHEN start IS NULL THEN 4503599627370496 ELSE floor((4503599627370496 - origin) / period) END;
  at float8;
  step float8 := 1;
  middle float8;
BEGIN
  IF last <= least_no
    OR tidegate.refill_value(rate, period, capacity, start, value, ts, origin + last * unit) - count < floor_value
  THEN RETURN NULL; END IF;
  at := tidegate.periods(count + floor_value - value, rate);
  IF start IS NULL THEN at := ts + at * period; END IF;
  at := LEAST(GREATEST(ceil(at), least_no + 1), last);
  WHILE tidegate.refill_value(rate, period, capacity, start, value, ts, origin + at * unit) - count < floor_value LOOP
    least_no := at;
    at := LEAST(at + step, last);
    step := step * 2;
  END LOOP;
  WHILE at - step > least_no LOOP
    EXIT WHEN tidegate.refill_value(rate, period, capacity, start, value, ts, origin + (at - step) * unit) - count
      < floor_value;
    at := at - step;
    step := step * 2;
  END LOOP;
  least_no := GREATEST(least_no, at - step);
  WHILE at - least_no > 1 LOOP
    middle := least_no + floor((at - least_no) / 2);
    EXIT WHEN middle <= least_no OR middle >= at;
    IF tidegate.refill_value(rate, period, capacity, start, value, ts, origin + middle * unit) - count < floor_value THEN
      least_no := middle;
    ELSE
      at := middle;
    END IF;
  END LOOP;
  RETURN ceil(origin + at * unit);
END $$;

-- Raises an error that names the wrong argument of "decide".
CREATE OR REPLACE FUNCTION tidegate.refuse_arguments(
  op text, name text, rate float8, period float8, capacity float8, start float8, count float8, max_reserved float8
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  wrong text := CASE
    WHEN (op IN ('take', 'check', 'give', 'charge', 'block')) IS NOT TRUE
      THEN '"op" must be ''take'', ''check'', ''give'', ''charge'' or ''block''; got ' || quote_nullable(op)
    WHEN (rate > 0 AND rate <= 1099511627776) IS NOT TRUE
      THEN '"rate" must be a finite number of tokens above 0 and up to 1099511627776; got ' || coalesce(rate::text, 'NULL')
    WHEN (period >= 1 AND period <= 1099511627776 AND floor(period) = period) IS NOT TRUE
      THEN '"period" must be an integer of ms from 1 to 1099511627776; got ' || coalesce(period::text, 'NULL')
    WHEN NOT (capacity >= 0 AND capacity <= 1099511627776)
      THEN '"capacity" must be a finite number of tokens from 0 to 1099511627776; got ' || capacity
    WHEN op = 'block' AND (count >= 1 AND count <= 1099511627776 AND floor(count) = count) IS NOT TRUE
      THEN 'the length of a block must be an integer of ms from 1 to 1099511627776; got ' || coalesce(count::text, 'NULL')
    WHEN (count >= 0 AND count <= 1099511627776) IS NOT TRUE
      THEN '"count" must be a finite number of tokens from 0 to 1099511627776; got ' || coalesce(count::text, 'NULL')
    WHEN NOT (start = 'Infinity' OR abs(start) <= 4503599627370496 AND floor(start) = start)
      THEN '"start" must be ''Infinity'' (the first request), or an integer of ms from -4503599627370496 to 4503599627370496; got ' || start
    WHEN NOT (max_reserved >= 0 AND max_reserved <= 1099511627776)
      THEN '"max_reserved" must be a finite number of tokens from 0 to 1099511627776; got ' || max_reserved
    ELSE '"name" must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got ' || quote_nullable(name)
  END;
BEGIN
  RAISE EXCEPTION '%', wrong USING ERRCODE = '22023';
END $$;

-- One call on one limit and key: op "take", "check", "give", "charge" or "block", whose "count" is its length in ms. A key
-- of NULL is the limit as a whole. A fixed window has a "start", and a token bucket has none; a "start" of 'Infinity' is the
-- key's first request. retry_at is exact. Call it in FROM.
CREATE OR REPLACE FUNCTION tidegate.decide(
  op text, name text, key text, rate float8, period float8, capacity float8 DEFAULT NULL, start float8 DEFAULT NULL,
  count float8 DEFAULT 1, reserve boolean DEFAULT false, max_reserved float8 DEFAULT NULL, at float8 DEFAULT NULL,
  OUT ok boolean, OUT value float8, OUT ts float8, OUT retry_at float8, OUT now float8
) LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
  row_id bytea := convert_to(name || coalesce(':' || key, ''), 'UTF8');
  size float8 := coalesce(capacity, rate);
  floor_value float8;
  number_of_op int;
  reply text[];
  before_v float8;
  before_t float8;
  did record;
  decided boolean;
BEGIN
  IF NOT (at >= 0 AND at <= 4503599627370496) THEN
    RAISE EXCEPTION '"at" must be ms since the Unix epoch from 0 to 4503599627370496; got %', at USING ERRCODE = '22023';
  END IF;
  now := coalesce(floor(at), tidegate.clock());
  -- A take that a token bucket grants in the ordinary case, as in take_row: nothing else runs while the row is locked.
  -- Names without a colon need no check here: a row exists only if its name and key have passed the checks below.
  IF op = 'take' AND start IS NULL AND reserve IS FALSE AND max_reserved IS NULL AND strpos(name, ':') = 0
    AND rate > 1e-250 AND rate <= 1099511627776 AND period >= 1 AND period <= 1099511627776 AND floor(period) = period
    AND size >= 0 AND size <= 1099511627776 AND count > 0 AND count <= 1099511627776
    AND strpos(current_query(), ').*') = 0
  THEN
    UPDATE tidegate.states s
    SET value = tidegate.bucket_value(rate, period, size, s.value, s.ts, now) - count, ts = GREATEST(s.ts, now),
      full_at = GREATEST(s.ts, now)
        + tidegate.periods(size + count - tidegate.bucket_value(rate, period, size, s.value, s.ts, now), rate) * period
    WHERE s.id = row_id
      AND s.ts - now <= 3600000::float8 AND s.ts > '-Infinity'::float8 AND s.value < 'Infinity'::float8
      AND tidegate.bucket_value(rate, period, size, s.value, s.ts, now) >= count
    RETURNING s.value, s.ts INTO value, ts;
    ok := FOUND;
    IF ok THEN RETURN; END IF;
  END IF;

  number_of_op := array_position(ARRAY['take', 'check', 'give', 'charge', 'block'], op) - 1;
  IF (number_of_op >= 0 AND rate > 0 AND rate <= 1099511627776
    AND period >= 1 AND period <= 1099511627776 AND floor(period) = period
    AND size >= 0 AND size <= 1099511627776 AND count >= 0 AND count <= 1099511627776
    AND (op <> 'block' OR count >= 1 AND floor(count) = count)
    AND (start IS NULL OR start = 'Infinity' OR abs(start) <= 4503599627370496 AND floor(start) = start)
    AND (max_reserved IS NULL OR max_reserved >= 0 AND max_reserved <= 1099511627776)
    AND name ~ '^[A-Za-z0-9_.-]{1,64}$') IS NOT TRUE
  THEN PERFORM tidegate.refuse_arguments(op, name, rate, period, size, start, count, max_reserved);
  END IF;
  IF NOT octet_length(convert_to(key, 'UTF8')) BETWEEN 1 AND 1024 THEN
    RAISE EXCEPTION '"key" must be 1 to 1024 bytes in UTF-8, or NULL for the limit as a whole; got % bytes',
      octet_length(convert_to(key, 'UTF8')) USING ERRCODE = '22023';
  END IF;
  -- Without its quoted texts: drivers such as psycopg2 write the key into the statement, and clients may choose it. The
  -- patterns have no backslashes, which have another meaning if standard_conforming_strings is off.
  IF strpos(current_query(), ').*') > 0 AND regexp_replace(current_query(), '''[^'']*''', '', 'g')
    ~* 'decide[[:space:]]*[(][^;]*[)][[:space:]]*[)][.][*]'
  THEN
    RAISE EXCEPTION 'tidegate: (decide(...)).* calls decide once for each of its five columns, and would take five times'
      USING ERRCODE = '0A000', HINT = 'Write SELECT * FROM decide(...), with its schema, and with LATERAL where it needs a row.';
  END IF;
  floor_value := CASE WHEN reserve THEN -coalesce(max_reserved, 1.7976931348623157e308) ELSE 0 END;
  -- A call that writes nothing, such as a denial, and one that inserts the row, end here. Any other call locks the row.
  SELECT s.value, s.ts INTO before_v, before_t FROM tidegate.states s WHERE s.id = row_id;
  IF before_v IS NULL OR tidegate.is_state(before_v, before_t) THEN
    did := tidegate.apply_op(number_of_op, rate, period, size, floor_value, start, count, before_v, before_t, now);
    IF before_v IS NULL AND did.new_value IS NOT NULL THEN
      INSERT INTO tidegate.states VALUES (row_id, did.new_value, did.new_ts,
        tidegate.full_at(rate, period, size, start, did.new_value, did.new_ts)) ON CONFLICT (id) DO NOTHING;
    END IF;
    decided := FOUND AND before_v IS NULL OR did.new_value IS NULL;
  END IF;
  IF decided IS NOT TRUE THEN
    reply := string_to_array(
      tidegate.call_rows(ARRAY[row_id], '{1}', '{1}', '{1}', '{1}', ARRAY[number_of_op], ARRAY[rate],
        ARRAY[period], ARRAY[size], ARRAY[floor_value], ARRAY[coalesce(start, 'NaN')], ARRAY[count], now), ';');
    before_v := NULLIF(reply[2], '')::float8;
    before_t := NULLIF(reply[3], '')::float8;
    IF NOT (before_v IS NULL OR tidegate.is_state(before_v, before_t)) THEN
      RAISE EXCEPTION 'tidegate: the state of "%" is not two finite numbers', name || coalesce(':' || key, '')
        USING ERRCODE = 'XX001';
    END IF;
    did := tidegate.apply_op(number_of_op, rate, period, size, floor_value, start, count, before_v, before_t, now);
  END IF;
  -- One in 128 calls that insert a row deletes full rows, which have been idle for an hour: few calls wait for their locks.
  IF before_v IS NULL AND did.new_value IS NOT NULL AND at IS NULL AND random() < 1 / 128.0
    AND current_setting('transaction_isolation') = 'read committed'
  THEN PERFORM tidegate.purge(512, CASE WHEN random() < 0.5 THEN row_id ELSE '' END);
  END IF;
  ok := did.ok;
  value := coalesce(did.new_value, tidegate.refill_value(rate, period, size, start, before_v, before_t, now));
  ts := coalesce(did.new_ts, tidegate.refill_ts(rate, period, size, start, before_v, before_t, now));
  IF NOT ok AND size - count < floor_value THEN
    value := 0;
    ts := now;
  ELSIF NOT ok AND value - count < floor_value THEN
    -- Otherwise there is no such time: the debt would be paid only after the latest clock reading.
    retry_at := tidegate.least_time(rate, period, size, start, before_v, before_t, now, count, floor_value);
  ELSIF op = 'block' THEN
    retry_at := tidegate.least_time(rate, period, size, start, coalesce(did.new_value, before_v),
      coalesce(did.new_ts, before_t), now, LEAST(size, 1), 0);
  ELSIF ok THEN
    -- A check writes nothing; its value is the one that a take would leave.
    IF did.new_value IS NULL AND op = 'check' THEN value := value - count; END IF;
    IF value < 0 THEN retry_at := tidegate.least_time(rate, period, size, start, value, ts, now, 0, 0); END IF;
  END IF;
END $$;

-- Blocks a limit and key for "ms": a request for one token is denied until then, and retry_at is the end. The other
-- arguments are those of "decide".
CREATE OR REPLACE FUNCTION tidegate.block(
  name text, key text, ms float8, rate float8, period float8, capacity float8 DEFAULT NULL, start float8 DEFAULT NULL,
  at float8 DEFAULT NULL, OUT value float8, OUT ts float8, OUT retry_at float8, OUT now float8
) LANGUAGE sql VOLATILE AS $$
  SELECT d.value, d.ts, d.retry_at, d.now
  FROM tidegate.decide('block', name, key, rate, period, capacity, start, ms, at => at) d
$$;

-- Ends a block, and forgives any other debt of a limit and key: the key is full.
CREATE OR REPLACE FUNCTION tidegate.unblock(name text, key text) RETURNS void LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
  DELETE FROM tidegate.states s WHERE s.id = tidegate.id(name, key)
$$;
