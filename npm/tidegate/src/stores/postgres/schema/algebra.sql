-- The algebra in SQL: the operations of the core, in the same order and on the same doubles. The tests compare the two
-- bit for bit.
--
-- `LEAST(b, a)` is the core's `min(a, b)`: it returns its first argument if the two are equal. A `start` of NULL is a token
-- bucket; an infinite one is windows that begin at the first request. A `value` of NULL is no state, and a floor of -1.8e308
-- is no floor.

CREATE OR REPLACE FUNCTION tidegate.clock() RETURNS float8 LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT floor(date_part('epoch', clock_timestamp()) * 1000)
$$;

CREATE OR REPLACE FUNCTION tidegate.id(name text, key text DEFAULT NULL)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT convert_to(name || coalesce(':' || key, ''), 'UTF8')
$$;

-- Whether both numbers are finite. PostgreSQL orders NaN above every other number, and equal to itself.
CREATE OR REPLACE FUNCTION tidegate.is_state(value float8, ts float8)
RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value < 'Infinity' AND value > '-Infinity' AND ts < 'Infinity' AND ts > '-Infinity'
$$;

-- Tokens that are added in `elapsed` ms. PostgreSQL raises an error for a quotient that is too small for a double, where the
-- algebra has 0: at most half of the smallest double, 2^-1074. Both sides of the comparison are multiplied by a power of
-- two, 2^601 in total, so they are exact.
CREATE OR REPLACE FUNCTION tidegate.returned(elapsed float8, rate float8, period float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN rate > 1e-250::float8 THEN (elapsed * rate) / period
    WHEN (elapsed * rate) * 8.299031137761986e+180::float8 <= period * 2.0501330894674953e-143::float8 THEN 0::float8
    ELSE (elapsed * rate) / period
  END
$$;

-- Origin of the window grid of a state; NULL for a token bucket.
CREATE OR REPLACE FUNCTION tidegate.grid(start float8, ts float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN start = 'Infinity'::float8 THEN ts ELSE start END
$$;

-- refill: the value, then the ts.
CREATE OR REPLACE FUNCTION tidegate.refill_value(
  rate float8, period float8, capacity float8, start float8, value float8, ts float8, now float8
) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN value IS NULL OR ts - now > 3600000::float8 THEN capacity
    WHEN start IS NULL THEN CASE
      WHEN now <= ts THEN LEAST(capacity, value)
      ELSE LEAST(capacity, value + tidegate.returned(now - ts, rate, period))
    END
    WHEN floor((now - tidegate.grid(start, ts)) / period) - floor((ts - tidegate.grid(start, ts)) / period) <= 0::float8
      THEN LEAST(capacity, value)
    ELSE LEAST(capacity, value + rate
      * (floor((now - tidegate.grid(start, ts)) / period) - floor((ts - tidegate.grid(start, ts)) / period)))
  END
$$;

CREATE OR REPLACE FUNCTION tidegate.refill_ts(
  rate float8, period float8, capacity float8, start float8, value float8, ts float8, now float8
) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN value IS NULL OR ts - now > 3600000::float8 THEN
      CASE WHEN start IS NULL OR start = 'Infinity'::float8 THEN now
        ELSE start + floor((now - start) / period) * period END
    WHEN start IS NULL THEN CASE WHEN now <= ts THEN ts ELSE now END
    -- The next request on a full key opens a window.
    WHEN start = 'Infinity'::float8 AND now > ts
      AND (tidegate.refill_value(rate, period, capacity, start, value, ts, now) >= capacity
        OR ts + floor((now - ts) / period) * period > now) THEN now
    WHEN floor((now - tidegate.grid(start, ts)) / period) - floor((ts - tidegate.grid(start, ts)) / period) <= 0::float8
      THEN ts
    ELSE tidegate.grid(start, ts) + floor((now - tidegate.grid(start, ts)) / period) * period
  END
$$;

-- Whether a debt is paid before the clock ends.
CREATE OR REPLACE FUNCTION tidegate.is_payable(
  rate float8, period float8, start float8, value float8, ts float8, now float8
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN start IS NULL THEN
      now < 4503599627370496::float8 AND ts < 4503599627370496::float8
      AND value + tidegate.returned(4503599627370496::float8 - ts, rate, period) >= 0::float8
    WHEN floor((4503599627370496::float8 - tidegate.grid(start, ts)) / period)
        - floor((ts - tidegate.grid(start, ts)) / period)
      <= GREATEST(0::float8, floor((now - tidegate.grid(start, ts)) / period)
        - floor((ts - tidegate.grid(start, ts)) / period)) THEN false
    ELSE value + rate * (floor((4503599627370496::float8 - tidegate.grid(start, ts)) / period)
      - floor((ts - tidegate.grid(start, ts)) / period)) >= 0::float8
  END
$$;

-- refill_value of a token bucket in the ordinary case: a state that is not from a broken clock, and a rate above 1e-250.
-- It is faster to set up. The result is the same to the bit, since 0 ms add 0 tokens.
CREATE OR REPLACE FUNCTION tidegate.bucket_value(
  rate float8, period float8, capacity float8, value float8, ts float8, now float8
) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT LEAST(capacity, value + (GREATEST(now - ts, 0::float8) * rate) / period)
$$;

-- Periods until this many tokens, more than 0, are added: an estimate. PostgreSQL raises an error for a quotient that is too
-- small for a double.
CREATE OR REPLACE FUNCTION tidegate.periods(tokens float8, rate float8)
RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT GREATEST(tokens, 1e-250::float8) / rate
$$;

-- When a state is full again, ms since the Unix epoch: an estimate, for deleting rows an hour later. At a rate that is too
-- small for the quotient, that is never.
CREATE OR REPLACE FUNCTION tidegate.full_at(
  rate float8, period float8, capacity float8, start float8, value float8, ts float8
) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN rate <= 1e-250::float8 THEN 'Infinity'::float8
    WHEN value >= capacity THEN ts
    WHEN start IS NULL THEN ts + tidegate.periods(capacity - value, rate) * period
    ELSE ts + ceil(tidegate.periods(capacity - value, rate)) * period
  END
$$;
