-- The two calls that most traffic is. Both first insert what is missing and then update what is there, in the order of
-- ids; so do all functions that lock several rows. What is inserted is nobody else's to wait for until it is
-- committed, and what is updated is locked in one order by everyone: no two calls ever wait for each other.
--
-- Their settings keep to the index: a plan is kept for long, and one that was made while the table was small, by reading
-- it all, would be a slow one when it has grown. It also keeps the order.

-- One request without reserve on one row. Answers "now,f" where there was none, "now,g,value,ts" with what was written,
-- or "now,s,value,ts" with what is stored where that denies or is not a state.
CREATE OR REPLACE FUNCTION tidegate.take_one(
  key bytea, rate float8, period float8, capacity float8, start float8, count float8, at float8 DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE SET extra_float_digits = 1 SET enable_seqscan = off AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  v float8;
  t float8;
BEGIN
  -- The ordinary case at once; what it leaves alone is looked at below. NaN is above every number, so that it is left.
  IF start IS NULL AND rate > 1e-250 AND count > 0 THEN
    UPDATE tidegate.states s
    SET value = tidegate.bucket_value(rate, period, capacity, s.value, s.ts, now) - count, ts = GREATEST(s.ts, now)
    WHERE s.id = key AND s.ts - now <= 3600000::float8 AND s.ts > '-Infinity'::float8 AND s.value < 'Infinity'::float8
      AND tidegate.bucket_value(rate, period, capacity, s.value, s.ts, now) >= count
    RETURNING s.value, s.ts INTO v, t;
    IF FOUND THEN RETURN now || ',g,' || v || ',' || t; END IF;
  END IF;
  LOOP
    SELECT s.value, s.ts INTO v, t FROM tidegate.states s WHERE s.id = key;
    IF NOT FOUND THEN
      IF count = 0 THEN RETURN now || ',f'; END IF;
      INSERT INTO tidegate.states AS s
      VALUES (key, capacity - count, tidegate.refill_ts(period, start, NULL, NULL, now)) ON CONFLICT (id) DO NOTHING;
      IF FOUND THEN RETURN now || ',f'; END IF;
    ELSIF count = 0 OR NOT tidegate.is_state(v, t)
      OR tidegate.refill_value(rate, period, capacity, start, v, t, now) < count
    THEN
      RETURN now || ',s,' || v || ',' || t;
    ELSE
      UPDATE tidegate.states s
      SET value = tidegate.refill_value(rate, period, capacity, start, s.value, s.ts, now) - count,
        ts = tidegate.refill_ts(period, start, s.value, s.ts, now)
      WHERE s.id = key AND tidegate.is_state(s.value, s.ts)
        AND tidegate.refill_value(rate, period, capacity, start, s.value, s.ts, now) >= count
      RETURNING s.value, s.ts INTO v, t;
      IF FOUND THEN RETURN now || ',g,' || v || ',' || t; END IF;
    END IF;
  END LOOP;
END $$;

-- The same for many rows, each once: ids ascending, and for each which of the rules. "starts" has the window grid of
-- each id, or is NULL where the rules are token buckets. Answers in five lists, joined: the clock; places, values and
-- ts (left out where it is the clock) of what was written; places of what was inserted; places, values and ts of what is
-- stored, of all others. Where what is stored would grant, it came in between: such a request is asked again.
CREATE OR REPLACE FUNCTION tidegate.take_many(
  ids bytea[], rules int[], starts float8[], rates float8[], periods float8[], capacities float8[], counts float8[],
  at float8 DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE
SET extra_float_digits = 1 SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  total int := cardinality(ids);
  todo bytea[] := ids;
  todo_starts float8[] := starts;
  places int[];
  missing int[];
  fresh int[];
  written int[];
  new_values float8[];
  new_ts float8[];
  kept int[];
  kept_values float8[];
  kept_ts float8[];
BEGIN
  SELECT array_agg(i.n) INTO missing FROM unnest(ids) WITH ORDINALITY i(id, n)
  WHERE NOT EXISTS (SELECT FROM tidegate.states o WHERE o.id = i.id);
  IF missing IS NOT NULL THEN
    WITH inserted AS (
      INSERT INTO tidegate.states AS s
      SELECT i.id, capacities[i.r] - counts[i.r], tidegate.refill_ts(periods[i.r], i.start, NULL, NULL, now)
      FROM unnest(ids, rules, starts) WITH ORDINALITY i(id, r, start, n) JOIN unnest(missing) m(n) ON m.n = i.n
      ORDER BY i.n
      ON CONFLICT (id) DO NOTHING RETURNING s.id
    )
    SELECT array_agg(i.n) INTO fresh FROM unnest(ids) WITH ORDINALITY i(id, n) JOIN inserted USING (id);
  END IF;

  IF fresh IS NOT NULL THEN
    -- What was inserted is settled: the rest is left, and its places are kept.
    SELECT array_agg(i.id ORDER BY i.n), array_agg(i.r ORDER BY i.n), array_agg(i.start ORDER BY i.n),
      array_agg(i.n ORDER BY i.n)
    INTO todo, rules, todo_starts, places
    FROM unnest(ids, rules, starts) WITH ORDINALITY i(id, r, start, n) LEFT JOIN unnest(fresh) f(n) ON f.n = i.n
    WHERE f.n IS NULL;
  END IF;
  IF todo IS NULL THEN
    NULL;
  ELSIF starts IS NULL AND 1e-250 < ALL (rates) THEN
    WITH updated AS (
      UPDATE tidegate.states s
      SET value = tidegate.bucket_value(rates[i.r], periods[i.r], capacities[i.r], s.value, s.ts, now) - counts[i.r],
        ts = GREATEST(s.ts, now)
      FROM unnest(todo, rules) WITH ORDINALITY i(id, r, n)
      WHERE s.id = i.id
        AND s.ts - now <= 3600000::float8 AND s.ts > '-Infinity'::float8 AND s.value < 'Infinity'::float8
        AND tidegate.bucket_value(rates[i.r], periods[i.r], capacities[i.r], s.value, s.ts, now) >= counts[i.r]
      RETURNING coalesce(places[i.n], i.n) AS n, s.value, NULLIF(s.ts, now) AS ts
    )
    SELECT array_agg(u.n), array_agg(u.value), array_agg(u.ts) INTO written, new_values, new_ts FROM updated u;
  ELSE
    WITH updated AS (
      UPDATE tidegate.states s
      SET value = tidegate.refill_value(rates[i.r], periods[i.r], capacities[i.r], i.start, s.value, s.ts, now)
          - counts[i.r],
        ts = tidegate.refill_ts(periods[i.r], i.start, s.value, s.ts, now)
      FROM unnest(todo, rules, todo_starts) WITH ORDINALITY i(id, r, start, n)
      WHERE s.id = i.id AND tidegate.is_state(s.value, s.ts)
        AND tidegate.refill_value(rates[i.r], periods[i.r], capacities[i.r], i.start, s.value, s.ts, now)
          >= counts[i.r]
      RETURNING coalesce(places[i.n], i.n) AS n, s.value, NULLIF(s.ts, now) AS ts
    )
    SELECT array_agg(u.n), array_agg(u.value), array_agg(u.ts) INTO written, new_values, new_ts FROM updated u;
  END IF;

  IF coalesce(cardinality(written), 0) + coalesce(cardinality(fresh), 0) < total THEN
    SELECT array_agg(i.n), array_agg(s.value), array_agg(s.ts) INTO kept, kept_values, kept_ts
    FROM unnest(ids) WITH ORDINALITY i(id, n) JOIN tidegate.states s ON s.id = i.id
    WHERE i.n <> ALL (coalesce(written, '{}')) AND i.n <> ALL (coalesce(fresh, '{}'));
  END IF;
  RETURN now || ';' || coalesce(array_to_string(written, ','), '')
    || ';' || coalesce(array_to_string(new_values, ','), '') || ';' || coalesce(array_to_string(new_ts, ',', ''), '')
    || ';' || coalesce(array_to_string(fresh, ','), '') || ';' || coalesce(array_to_string(kept, ','), '')
    || ';' || coalesce(array_to_string(kept_values, ','), '') || ';' || coalesce(array_to_string(kept_ts, ','), '');
END $$;

-- What is stored under these ids: "now;value,...;ts,...", nothing between the commas where nothing is stored.
CREATE OR REPLACE FUNCTION tidegate.read_many(ids bytea[], at float8 DEFAULT NULL)
RETURNS text LANGUAGE sql VOLATILE
SET extra_float_digits = 1 SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
  SELECT coalesce(at, tidegate.clock()) || ';' || coalesce(array_to_string(array_agg(s.value ORDER BY i.n), ',', ''), '')
    || ';' || coalesce(array_to_string(array_agg(s.ts ORDER BY i.n), ',', ''), '')
  FROM unnest(ids) WITH ORDINALITY i(id, n) LEFT JOIN tidegate.states s ON s.id = i.id
$$;

-- Forgets these ids. They are locked in their order first. Answers how many there were.
CREATE OR REPLACE FUNCTION tidegate.forget(ids bytea[]) RETURNS text LANGUAGE sql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
  WITH locked AS MATERIALIZED (
    SELECT s.id FROM tidegate.states s WHERE s.id = ANY (ids) ORDER BY s.id FOR UPDATE
  ), gone AS (
    DELETE FROM tidegate.states s USING locked l WHERE s.id = l.id RETURNING 1
  )
  SELECT count(*)::text FROM gone
$$;
