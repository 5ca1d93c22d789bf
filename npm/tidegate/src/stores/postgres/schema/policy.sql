-- For those who ask in SQL, and for upkeep: one limit and key, in words. A fixed window needs its "start" here: the
-- default that is derived from the key is the library's.

-- The first whole ms after "now" at which a state holds "count" more than "floor_value", or NULL where the clock ends
-- before. The closed form says where to look; the answer is found by the evaluation itself.
CREATE OR REPLACE FUNCTION tidegate.least_time(
  rate float8, period float8, capacity float8, start float8, value float8, ts float8, now float8, count float8,
  floor_value float8
) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  -- Steps of 1 ms from ts, or of one window from its own.
  unit float8 := CASE WHEN start IS NULL THEN 1 ELSE period END;
  origin float8 := CASE WHEN start IS NULL THEN 0 ELSE start + floor((ts - start) / period) * period END;
  least_no float8 := CASE WHEN start IS NULL THEN GREATEST(ts, now) ELSE GREATEST(0, floor((now - origin) / period)) END;
  last float8 := CASE WHEN start IS NULL THEN 4503599627370496 ELSE floor((4503599627370496 - origin) / period) END;
  at float8;
  step float8 := 1;
  middle float8;
BEGIN
  IF last <= least_no
    OR tidegate.refill_value(rate, period, capacity, start, value, ts, origin + last * unit) - count < floor_value
  THEN RETURN NULL; END IF;
  at := CASE WHEN start IS NULL THEN ts + ((count + floor_value - value) / rate) * period
    ELSE (count + floor_value - value) / rate END;
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
  RETURN origin + at * unit;
END $$;

-- One call on one limit and key: op "take", "check", "give" or "charge". Times are ms since the Unix epoch. Without a
-- key: the limit as a whole. The answer is the library's: retry_at is exact.
CREATE OR REPLACE FUNCTION tidegate.decide(
  op text, name text, key text, rate float8, period float8, capacity float8 DEFAULT NULL, start float8 DEFAULT NULL,
  count float8 DEFAULT 1, reserve boolean DEFAULT false, max_reserved float8 DEFAULT NULL, at float8 DEFAULT NULL,
  OUT ok boolean, OUT value float8, OUT ts float8, OUT retry_at float8, OUT now float8
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  size float8 := coalesce(capacity, rate);
  floor_value float8 := CASE WHEN reserve THEN -coalesce(max_reserved, 1.7976931348623157e308) ELSE 0 END;
  specs float8[] := ARRAY[
    array_position(ARRAY['take', 'check', 'give', 'charge'], op) - 1, rate, period, size, floor_value,
    coalesce(start, 'NaN'), count];
  answer text[];
  before_v float8;
  before_t float8;
  did record;
BEGIN
  IF specs[1] IS NULL THEN
    RAISE EXCEPTION '"op" must be ''take'', ''check'', ''give'' or ''charge''; got %', quote_nullable(op)
      USING ERRCODE = '22023';
  ELSIF rate IS NULL OR NOT (rate > 0 AND rate <= 1099511627776) THEN
    RAISE EXCEPTION '"rate" must be a finite number of tokens above 0 and up to 1099511627776; got %',
      coalesce(rate::text, 'NULL') USING ERRCODE = '22023';
  ELSIF period IS NULL OR NOT (period >= 1 AND period <= 1099511627776 AND floor(period) = period) THEN
    RAISE EXCEPTION '"period" must be a whole number of ms from 1 to 1099511627776; got %', coalesce(period::text, 'NULL')
      USING ERRCODE = '22023';
  ELSIF NOT (size >= 0 AND size <= 1099511627776) THEN
    RAISE EXCEPTION '"capacity" must be a finite number of tokens from 0 to 1099511627776; got %', size
      USING ERRCODE = '22023';
  ELSIF count IS NULL OR NOT (count >= 0 AND count <= 1099511627776) THEN
    RAISE EXCEPTION '"count" must be a finite number of tokens from 0 to 1099511627776; got %', coalesce(count::text, 'NULL')
      USING ERRCODE = '22023';
  ELSIF start IS NOT NULL AND NOT (abs(start) <= 4503599627370496 AND floor(start) = start) THEN
    RAISE EXCEPTION '"start" must be a whole number of ms from -4503599627370496 to 4503599627370496; got %', start
      USING ERRCODE = '22023';
  ELSIF max_reserved IS NOT NULL AND NOT (max_reserved >= 0 AND max_reserved <= 1099511627776) THEN
    RAISE EXCEPTION '"max_reserved" must be a finite number of tokens from 0 to 1099511627776; got %', max_reserved
      USING ERRCODE = '22023';
  ELSIF name IS NULL OR name !~ '^[A-Za-z0-9_.-]{1,64}$' THEN
    RAISE EXCEPTION '"name" must be 1 to 64 characters of A-Z a-z 0-9 _ . -; got %', quote_nullable(name)
      USING ERRCODE = '22023';
  END IF;
  answer := string_to_array(
    tidegate.run(ARRAY[tidegate.id(name, key)], '{1}', 1, specs, ARRAY[0, 1, 1, 1], at => floor(at)), ';');
  now := answer[1]::float8;
  before_v := NULLIF(answer[3], '')::float8;
  before_t := NULLIF(answer[4], '')::float8;
  IF NOT (before_v IS NULL OR tidegate.is_state(before_v, before_t)) THEN
    RAISE EXCEPTION 'tidegate: the state of "%" is not two finite numbers', name || coalesce(':' || key, '')
      USING ERRCODE = 'XX001';
  END IF;
  did := tidegate.apply(before_v, before_t, specs, 1, now);
  ok := did.ok;
  value := coalesce(did.new_value, tidegate.refill_value(rate, period, size, start, before_v, before_t, now));
  ts := coalesce(did.new_ts, tidegate.refill_ts(period, start, before_v, before_t, now));
  IF NOT ok AND size - count < floor_value THEN
    value := 0;
    ts := now;
  ELSIF NOT ok AND value - count < floor_value AND before_v IS NOT NULL AND NOT before_t - now > 3600000 THEN
    -- Else no wait grants it: the debt would outlast the clock, or it is full as it is.
    retry_at := tidegate.least_time(rate, period, size, start, before_v, before_t, now, count, floor_value);
  ELSIF ok THEN
    -- A check or a count of 0 writes nothing; what it would leave is told all the same.
    IF did.new_value IS NULL AND op = 'check' THEN value := value - count; END IF;
    IF value < 0 THEN retry_at := tidegate.least_time(rate, period, size, start, value, ts, now, 0, 0); END IF;
  END IF;
END $$;

-- Removes rows that are full by this policy, which are the same as none: of the limit "name", at most "slice" rows looked
-- at, from id "after" on. Rows that are locked are left alone. Answers how many it removed, and where to go on (NULL:
-- that was the last slice). A limit of several shards is purged by the rate and capacity of one.
CREATE OR REPLACE FUNCTION tidegate.purge(
  name text, rate float8, period float8, capacity float8, windows boolean DEFAULT false, slice int DEFAULT 1000,
  after bytea DEFAULT '', at float8 DEFAULT NULL, OUT removed int, OUT next bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  looked int;
BEGIN
  -- A window's own ts is on its grid: so no "start" is needed to count the windows since.
  WITH seen AS MATERIALIZED (
    SELECT s.id FROM tidegate.states s
    WHERE s.id > after AND s.id >= convert_to(name, 'UTF8') AND s.id < convert_to(name, 'UTF8') || decode('ff', 'hex')
    ORDER BY s.id LIMIT slice
  ), full_rows AS MATERIALIZED (
    SELECT s.id FROM tidegate.states s JOIN seen ON seen.id = s.id
    WHERE substr(s.id, 1, length(convert_to(name, 'UTF8')) + 1) IN (
        convert_to(name, 'UTF8'), convert_to(name || ':', 'UTF8'), convert_to(name || '/', 'UTF8'))
      AND tidegate.is_state(s.value, s.ts) AND now >= s.ts
      AND tidegate.refill_value(rate, period, capacity, CASE WHEN windows THEN s.ts END, s.value, s.ts, now) >= capacity
    FOR UPDATE OF s SKIP LOCKED
  ), gone AS (
    DELETE FROM tidegate.states s USING full_rows f WHERE s.id = f.id RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM seen), (SELECT id FROM seen ORDER BY id DESC LIMIT 1)
  INTO removed, looked, next;
  IF looked < slice THEN next := NULL; END IF;
END $$;

-- The same, slice by slice to the end, each committed on its own: CALL tidegate.sweep('sendMessage', 10, 60000, 20).
CREATE OR REPLACE PROCEDURE tidegate.sweep(
  name text, rate float8, period float8, capacity float8, windows boolean DEFAULT false, slice int DEFAULT 1000
) LANGUAGE plpgsql AS $$
DECLARE
  step record;
  at_id bytea := '';
BEGIN
  LOOP
    step := tidegate.purge(name, rate, period, capacity, windows, slice, at_id);
    COMMIT;
    EXIT WHEN step.next IS NULL;
    at_id := step.next;
  END LOOP;
END $$;
