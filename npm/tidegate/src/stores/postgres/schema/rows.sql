-- The functions that the library calls. Each function that locks several rows locks them in the order of their ids, so no
-- two calls deadlock.
--
-- A function whose arguments or reply change gets a new name. So a process calls the functions of its own version, or gets
-- an error that says to migrate.
--
-- The functions turn off the plans that do not use the index: PostgreSQL caches plans, and a full scan that was fast while
-- the table was small would be slow once the table has grown. `extra_float_digits` keeps doubles exact as text. `jit = off`
-- is for sessions that turn off what the plan needs, such as `enable_nestloop`: the server then estimates a very high cost,
-- and would compile each statement, for half a second. `search_path` keeps out operators of other roles in the caller's path:
-- PostgreSQL prefers such a `float8 * int` to a conversion, and would execute it with the caller's rights.

-- Raises an error if a row can be neither found nor written: otherwise a call would be granted and not recorded.
CREATE OR REPLACE FUNCTION tidegate.refuse_unwritten() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'tidegate: the table states did not take a row: a trigger on it, or row-level security, prevents that';
END $$;

-- The most common call: one take of "count" above 0, without reserve, on one row. Returns "now,value,ts" with the state that
-- was written, followed by ",new" if there was no row; or "now,value,ts,denied" with the stored numbers, if these deny or are
-- not a state.
CREATE OR REPLACE FUNCTION tidegate.take_row(
  key bytea, rate float8, period float8, capacity float8, start float8, count float8, at float8 DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 SET enable_seqscan = off SET jit = off AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  v float8;
  t float8;
BEGIN
  -- A token bucket in the ordinary case. NaN is above every number, so a state with NaN goes to the branch below.
  IF start IS NULL AND rate > 1e-250 THEN
    UPDATE tidegate.states s
    SET value = tidegate.bucket_value(rate, period, capacity, s.value, s.ts, now) - count, ts = GREATEST(s.ts, now),
      full_at = GREATEST(s.ts, now) + period
        * tidegate.periods(capacity + count - tidegate.bucket_value(rate, period, capacity, s.value, s.ts, now), rate)
    WHERE s.id = key AND s.ts - now <= 3600000::float8 AND s.ts > '-Infinity'::float8 AND s.value < 'Infinity'::float8
      AND tidegate.bucket_value(rate, period, capacity, s.value, s.ts, now) >= count
    RETURNING s.value, s.ts INTO v, t;
    IF FOUND THEN RETURN now || ',' || v || ',' || t; END IF;
  END IF;
  -- Concurrent calls may insert or delete the row, but not at every try.
  FOR try IN 1 .. 100 LOOP
    SELECT s.value, s.ts INTO v, t FROM tidegate.states s WHERE s.id = key;
    IF NOT FOUND THEN
      v := capacity - count;
      t := tidegate.refill_ts(rate, period, capacity, start, NULL, NULL, now);
      INSERT INTO tidegate.states VALUES (key, v, t, tidegate.full_at(rate, period, capacity, start, v, t))
      ON CONFLICT (id) DO NOTHING;
      IF FOUND THEN RETURN now || ',' || v || ',' || t || ',new'; END IF;
      CONTINUE;
    ELSIF NOT tidegate.is_state(v, t) OR tidegate.refill_value(rate, period, capacity, start, v, t, now) < count THEN
      RETURN now || ',' || v || ',' || t || ',denied';
    ELSE
      UPDATE tidegate.states s
      SET value = tidegate.refill_value(rate, period, capacity, start, s.value, s.ts, now) - count,
        ts = tidegate.refill_ts(rate, period, capacity, start, s.value, s.ts, now),
        full_at = tidegate.full_at(rate, period, capacity, start,
          tidegate.refill_value(rate, period, capacity, start, s.value, s.ts, now) - count,
          tidegate.refill_ts(rate, period, capacity, start, s.value, s.ts, now))
      WHERE s.id = key AND tidegate.is_state(s.value, s.ts)
        AND tidegate.refill_value(rate, period, capacity, start, s.value, s.ts, now) >= count
      RETURNING s.value, s.ts INTO v, t;
      IF FOUND THEN RETURN now || ',' || v || ',' || t; END IF;
    END IF;
  END LOOP;
  PERFORM tidegate.refuse_unwritten();
END $$;

-- The state that a block for "ms" writes over a state ("v" is NULL for none); NULL if one token is denied until its end
-- anyway. It ends "ms" after the clock, or after the state's ts if that is ahead; on a grid of windows, where the first
-- window begins at or after that.
CREATE OR REPLACE FUNCTION tidegate.block_state(
  rate float8, period float8, capacity float8, start float8, v float8, t float8, now float8, ms float8,
  OUT new_value float8, OUT new_ts float8
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  held float8 := tidegate.refill_value(rate, period, capacity, start, v, t, now);
  at float8 := tidegate.refill_ts(rate, period, capacity, start, v, t, now);
  till float8 := GREATEST(at, now) + ms;
  one float8 := LEAST(capacity, 1::float8);
  target float8 := one;
  windows float8;
  gain float8;
  before float8;
  ulps float8;
BEGIN
  IF v IS NOT NULL AND NOT t - now > 3600000
    AND tidegate.refill_value(rate, period, capacity, start, v, t, till - 1) < one
  THEN RETURN; END IF;
  new_ts := at;
  IF start IS NULL THEN
    gain := tidegate.returned(till - at, rate, period);
    before := tidegate.returned(till - 1 - at, rate, period);
  ELSE
    target := GREATEST(one, LEAST(capacity, rate));
    IF start = 'Infinity' THEN
      windows := ceil(ms / period);
      target := LEAST(tidegate.refill_value(rate, period, capacity, start, held, at, till), target);
      new_ts := till - windows * period;
    ELSE
      windows := floor((till - 1 - start) / period) + 1 - floor((at - start) / period);
    END IF;
    gain := rate * windows;
    before := rate * (windows - 1);
  END IF;
  new_value := target - gain;
  -- PostgreSQL raises an error for a product that is too small for a double, where the algebra has 0. At 2^-1024 it is.
  ulps := CASE WHEN gain + target <= 5.562684646268003e-309::float8 THEN 0
    ELSE (gain + target) * 4.440892098500626e-16::float8 END;
  IF new_value + gain < one THEN new_value := new_value + ulps; END IF;
  IF new_value + before >= one THEN new_value := new_value - ulps; END IF;
END $$;

-- One operation on one state ("v" is NULL for none): whether it is granted, and the state that it writes, NULL for none.
-- op: 0 take, 1 check, 2 give, 3 charge, 4 block, whose "count" is its length in ms.
CREATE OR REPLACE FUNCTION tidegate.apply_op(
  op int, rate float8, period float8, capacity float8, floor_value float8, start float8, count float8,
  v float8, t float8, now float8, OUT ok boolean, OUT new_value float8, OUT new_ts float8
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  x float8 := tidegate.refill_value(rate, period, capacity, start, v, t, now);
  at float8 := tidegate.refill_ts(rate, period, capacity, start, v, t, now);
BEGIN
  ok := true;
  IF op = 4 THEN
    SELECT b.new_value, b.new_ts INTO new_value, new_ts
    FROM tidegate.block_state(rate, period, capacity, start, v, t, now, count) b;
    RETURN;
  END IF;
  IF op = 2 THEN
    IF count > 0 AND v IS NOT NULL AND NOT t - now > 3600000 THEN
      new_value := LEAST(capacity, x + count);
      new_ts := at;
    END IF;
    RETURN;
  END IF;
  x := x - count;
  IF op < 2 AND (capacity - count < floor_value OR x < floor_value
    OR (x < 0 AND NOT tidegate.is_payable(rate, period, start, x, at, now)))
  THEN ok := false;
  ELSIF op <> 1 AND count > 0 THEN
    new_value := x;
    new_ts := at;
  END IF;
END $$;

-- Any calls on any rows, in order. Call i is on row ids[row_of[i]]. Its numbers are at index spec_of[i] of the arrays from
-- "ops" on; a start of NaN is a token bucket, a floor of -1.8e308 is none. It is made times[i] times. Calls i to
-- i + together[i] - 1 are all granted, or none is. Op 5 deletes the row.
--
-- Returns "now;value,...;ts,...": the numbers that each row stored before, with nothing between the commas for no row. The
-- core repeats the calls on these, and makes the same decisions. Calls are first evaluated without a lock, since a denial
-- writes nothing.
CREATE OR REPLACE FUNCTION tidegate.call_rows(
  ids bytea[], row_of int[], spec_of int[], times int[], together int[], ops int[], rates float8[], periods float8[],
  capacities float8[], floors float8[], starts float8[], counts float8[], at float8 DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  locked boolean := false;
  inserted bytea[];
  seen_v float8[];
  seen_t float8[];
  before_v float8[];
  before_t float8[];
  v float8[];
  t float8[];
  -- Index of the numbers of the last write to each row; 0 if the row is deleted, NULL if it is unchanged.
  spec_written int[];
  written int;
  i int;
  k int;
  s int;
  last int;
  left_over int;
  x float8;
  start float8;
  did record;
  granted boolean;
  plan_v float8[];
  plan_t float8[];
BEGIN
  LOOP
    SELECT array_agg(r.value ORDER BY i.n), array_agg(r.ts ORDER BY i.n) INTO seen_v, seen_t
    FROM unnest(ids) WITH ORDINALITY i(id, n)
    LEFT JOIN tidegate.states r ON r.id = i.id AND r.id <> ALL (coalesce(inserted, '{}'));
    -- If no row changed before the locks were taken, the evaluation without them holds.
    EXIT WHEN locked AND seen_v IS NOT DISTINCT FROM before_v AND seen_t IS NOT DISTINCT FROM before_t;
    before_v := seen_v;
    before_t := seen_t;
    v := before_v;
    t := before_t;
    spec_written := array_fill(NULL::int, ARRAY[cardinality(ids)]);
    i := 1;
    WHILE i <= cardinality(row_of) LOOP
      k := row_of[i];
      s := spec_of[i];
      IF together[i] = 1 AND ops[s] = 0 AND floors[s] = 0 AND counts[s] > 0 THEN
        IF v[k] IS NULL OR tidegate.is_state(v[k], t[k]) THEN
          start := NULLIF(starts[s], 'NaN');
          x := tidegate.refill_value(rates[s], periods[s], capacities[s], start, v[k], t[k], now);
          left_over := times[i];
          IF x >= counts[s] THEN
            t[k] := tidegate.refill_ts(rates[s], periods[s], capacities[s], start, v[k], t[k], now);
            WHILE left_over > 0 AND x >= counts[s] LOOP
              x := x - counts[s];
              left_over := left_over - 1;
            END LOOP;
            v[k] := x;
            spec_written[k] := s;
          END IF;
        END IF;
        i := i + 1;
        CONTINUE;
      END IF;
      IF ops[s] = 5 THEN
        IF v[k] IS NOT NULL THEN spec_written[k] := 0; END IF;
        v[k] := NULL;
        t[k] := NULL;
        i := i + 1;
        CONTINUE;
      END IF;
      last := i + together[i] - 1;
      granted := true;
      plan_v := NULL;
      plan_t := NULL;
      FOR j IN i .. last LOOP
        k := row_of[j];
        s := spec_of[j];
        -- Calls on a row that is not a state fail.
        granted := granted AND (v[k] IS NULL OR tidegate.is_state(v[k], t[k]));
        EXIT WHEN NOT granted;
        did := tidegate.apply_op(ops[s], rates[s], periods[s], capacities[s], floors[s], NULLIF(starts[s], 'NaN'),
          counts[s], v[k], t[k], now);
        granted := did.ok;
        plan_v[j] := did.new_value;
        plan_t[j] := did.new_ts;
      END LOOP;
      IF granted THEN
        FOR j IN i .. last LOOP
          IF plan_v[j] IS NOT NULL THEN
            v[row_of[j]] := plan_v[j];
            t[row_of[j]] := plan_t[j];
            spec_written[row_of[j]] := spec_of[j];
          END IF;
        END LOOP;
      END IF;
      i := last + 1;
    END LOOP;
    EXIT WHEN locked OR array_remove(spec_written, NULL) = '{}';

    -- Locks every row, and inserts missing ones, in the order of the ids. With `WHERE false`, an existing row is locked and
    -- not written.
    WITH added AS (
      INSERT INTO tidegate.states AS r SELECT i.id, 0, 0 FROM unnest(ids) i(id) ORDER BY i.id
      ON CONFLICT (id) DO UPDATE SET value = r.value WHERE false RETURNING r.id
    )
    SELECT array_agg(added.id) INTO inserted FROM added;
    locked := true;
  END LOOP;

  IF locked THEN
    UPDATE tidegate.states r SET value = v[i.n], ts = t[i.n],
      full_at = tidegate.full_at(rates[i.s], periods[i.s], capacities[i.s], NULLIF(starts[i.s], 'NaN'), v[i.n], t[i.n])
    FROM unnest(ids, spec_written) WITH ORDINALITY i(id, s, n) WHERE r.id = i.id AND i.s > 0;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written <> cardinality(array_remove(array_remove(spec_written, NULL), 0)) THEN
      PERFORM tidegate.refuse_unwritten();
    END IF;
    IF array_position(v, NULL) IS NOT NULL THEN
      DELETE FROM tidegate.states r USING unnest(ids, v) i(id, v) WHERE r.id = i.id AND i.v IS NULL;
    END IF;
  END IF;
  RETURN now || ';' || array_to_string(before_v, ',', '') || ';' || array_to_string(before_t, ',', '');
END $$;

-- The stored states of these ids: "now;value,...;ts,...", with nothing between the commas for no row.
CREATE OR REPLACE FUNCTION tidegate.read_rows(ids bytea[], at float8 DEFAULT NULL)
RETURNS text LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
  SELECT coalesce(at, tidegate.clock()) || ';' || coalesce(array_to_string(array_agg(s.value ORDER BY i.n), ',', ''), '')
    || ';' || coalesce(array_to_string(array_agg(s.ts ORDER BY i.n), ',', ''), '')
  FROM unnest(ids) WITH ORDINALITY i(id, n) LEFT JOIN tidegate.states s ON s.id = i.id
$$;

-- Indexes (from 1) of the ids whose rows another transaction has locked or is inserting, joined by commas. It waits for none
-- of them, and changes nothing.
CREATE OR REPLACE FUNCTION tidegate.locked_rows(ids bytea[])
RETURNS text LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET lock_timeout = 1
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  free bytea[];
  taken int[];
  missing int[];
  place int;
BEGIN
  SELECT array_agg(l.id) INTO free FROM (
    SELECT s.id FROM tidegate.states s WHERE s.id = ANY (ids) FOR UPDATE SKIP LOCKED
  ) l;
  SELECT array_agg(i.n) FILTER (WHERE s.id IS NOT NULL), array_agg(i.n) FILTER (WHERE s.id IS NULL)
  INTO taken, missing
  FROM unnest(ids) WITH ORDINALITY i(id, n) LEFT JOIN tidegate.states s ON s.id = i.id
  WHERE i.id <> ALL (coalesce(free, '{}'));
  IF taken IS NULL AND missing IS NOT NULL THEN
    -- A row that another transaction is inserting is not visible, but a second insertion waits for it. Each one is undone.
    FOREACH place IN ARRAY missing LOOP
      BEGIN
        INSERT INTO tidegate.states VALUES (ids[place], 0, 0) ON CONFLICT (id) DO NOTHING;
        RAISE EXCEPTION USING ERRCODE = 'TG003';
      EXCEPTION
        WHEN lock_not_available THEN taken := taken || place;
        WHEN SQLSTATE 'TG003' THEN NULL;
      END;
    END LOOP;
  END IF;
  RETURN coalesce(array_to_string(taken, ','), '');
END $$;

-- Returns the reply. If more than "most" ms have passed since the server received the statement, an error undoes all of it:
-- by then its callers have their answers.
CREATE OR REPLACE FUNCTION tidegate.in_time(reply text, most float8)
RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000::float8 > most THEN
    RAISE EXCEPTION 'tidegate: the statement took more than % ms, and was undone', most USING ERRCODE = 'TG002';
  END IF;
  RETURN reply;
END $$;

-- call_rows in a transaction of its own at READ COMMITTED, whatever the session's default: there a statement waits for a
-- concurrent write, and is not undone by it. It is the first retry after a conflict.
CREATE OR REPLACE PROCEDURE tidegate.call_rows_committed(
  ids bytea[], row_of int[], spec_of int[], times int[], together int[], ops int[], rates float8[], periods float8[],
  capacities float8[], floors float8[], starts float8[], counts float8[], at float8, lock text, most float8,
  INOUT answer text DEFAULT NULL
) LANGUAGE plpgsql AS $$
BEGIN
  ROLLBACK;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  PERFORM set_config('lock_timeout', lock, true);
  answer := tidegate.in_time(tidegate.call_rows(ids, row_of, spec_of, times, together, ops, rates, periods, capacities,
    floors, starts, counts, at), most);
END $$;

-- Deletes rows that have been full for an hour, among the "slice" rows after the id "after". A full row is the same as no
-- row, and an hour is the most that a clock may step back. Locked rows are skipped. Returns how many rows were deleted, and
-- the id after which to continue; NULL at the end of the table.
CREATE OR REPLACE FUNCTION tidegate.purge(
  slice int DEFAULT 1000, after bytea DEFAULT '', at float8 DEFAULT NULL, OUT removed int, OUT next bytea
) LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  looked int;
BEGIN
  WITH seen AS MATERIALIZED (
    SELECT s.id, s.full_at FROM tidegate.states s WHERE s.id > after ORDER BY s.id LIMIT slice
  ), full_rows AS MATERIALIZED (
    SELECT s.id FROM tidegate.states s JOIN seen ON seen.id = s.id
    WHERE seen.full_at + 3600000 <= now AND s.full_at + 3600000 <= now
    FOR UPDATE OF s SKIP LOCKED
  ), gone AS (
    DELETE FROM tidegate.states s USING full_rows f WHERE s.id = f.id RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM seen), (SELECT id FROM seen ORDER BY id DESC LIMIT 1)
  INTO removed, looked, next;
  IF looked < slice THEN next := NULL; END IF;
END $$;

-- Purges the whole table, with a commit after each slice: CALL tidegate.sweep().
CREATE OR REPLACE PROCEDURE tidegate.sweep(slice int DEFAULT 1000) LANGUAGE plpgsql AS $$
DECLARE
  step record;
  after bytea := '';
BEGIN
  LOOP
    step := tidegate.purge(slice, after);
    COMMIT;
    EXIT WHEN step.next IS NULL;
    after := step.next;
  END LOOP;
END $$;
