-- Programs on rows: read without a lock, locked and written only where something is to be written.

-- Locks what a program writes, carries it out again where something changed in between, and writes it. Returns what the
-- rows held before; NULL (or where that must undo something, the exception TG001) where it has to be read again.
CREATE OR REPLACE FUNCTION tidegate.settle(
  ids bytea[], places int[], INOUT before_v float8[], INOUT before_t float8[], new_v float8[], new_t float8[],
  wrote boolean[], specs float8[], program int[], now float8, pools boolean, alone boolean, OUT settled boolean
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  due int := 0;
  done int := 0;
  there int := 0;
  locked_places int[];
  locked_values float8[];
  locked_ts float8[];
  again record;
  was_missing boolean[];
BEGIN
  settled := false;
  SELECT array_agg(b IS NULL ORDER BY n) INTO was_missing FROM unnest(before_v) WITH ORDINALITY x(b, n);
  SELECT count(*) FILTER (WHERE was_missing[i.place]), count(*) FILTER (WHERE NOT was_missing[i.place])
  INTO due, there FROM unnest(ids, places) i(id, place) WHERE wrote[i.place];
  IF due > 0 THEN
    WITH inserted AS (
      INSERT INTO tidegate.states SELECT i.id, new_v[i.place], new_t[i.place]
      FROM unnest(ids, places) i(id, place) WHERE wrote[i.place] AND was_missing[i.place] ORDER BY i.id
      ON CONFLICT (id) DO NOTHING RETURNING 1
    )
    SELECT count(*) INTO done FROM inserted;
  END IF;
  IF done = due AND there > 0 THEN
    SELECT array_agg(l.place), array_agg(l.value), array_agg(l.ts) INTO locked_places, locked_values, locked_ts FROM (
      SELECT i.place, s.value, s.ts FROM unnest(ids, places) i(id, place) JOIN tidegate.states s ON s.id = i.id
      WHERE wrote[i.place] AND NOT was_missing[i.place] ORDER BY s.id FOR UPDATE OF s
    ) l;
    done := done + coalesce(cardinality(locked_places), 0);
    IF done = due + there AND EXISTS (
      SELECT FROM unnest(locked_places, locked_values, locked_ts) l(place, value, ts)
      WHERE l.value <> before_v[l.place] OR l.ts <> before_t[l.place])
    THEN
      FOR i IN 1 .. cardinality(locked_places) LOOP
        before_v[locked_places[i]] := locked_values[i];
        before_t[locked_places[i]] := locked_ts[i];
      END LOOP;
      again := tidegate.evaluate(before_v, before_t, specs, program, now, pools);
      IF again.wants_pools OR EXISTS (
        SELECT FROM unnest(again.wrote, wrote, was_missing, again.v, new_v, again.t, new_t) a(writes, wrote_then, was_none, v, w, t, u)
        WHERE (a.writes AND NOT a.wrote_then)
          OR (a.wrote_then AND a.was_none AND (NOT a.writes OR a.v <> a.w OR a.t <> a.u)))
      THEN
        done := -1;
      ELSE
        new_v := again.v;
        new_t := again.t;
        wrote := again.wrote;
      END IF;
    END IF;
    IF done = due + there THEN
      UPDATE tidegate.states s SET value = new_v[i.place], ts = new_t[i.place]
      FROM unnest(ids, places) i(id, place) WHERE s.id = i.id AND wrote[i.place] AND NOT was_missing[i.place];
    END IF;
  END IF;
  settled := done = due + there;
  IF NOT settled AND NOT alone THEN
    RAISE EXCEPTION 'tidegate: the rows changed while they were being locked' USING ERRCODE = 'TG001';
  END IF;
END $$;

-- Carries a program out. "places" tells where each id stands; the rows of a pool stand at pool_firsts, one after
-- another, and are read only where it comes to them (or "pools" says that it will). Answers "now;pools;value,...;ts,...":
-- whether the pools were read, and what was stored before.
CREATE OR REPLACE FUNCTION tidegate.run(
  ids bytea[], places int[], total int, specs float8[], program int[], pools boolean DEFAULT false,
  pool_prefixes bytea[] DEFAULT '{}', pool_suffixes bytea[] DEFAULT '{}', pool_firsts int[] DEFAULT '{}',
  pool_sizes int[] DEFAULT '{}', at float8 DEFAULT NULL
) RETURNS text LANGUAGE plpgsql VOLATILE
SET extra_float_digits = 1 SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  now float8 := coalesce(at, tidegate.clock());
  loaded boolean := NOT pools;
  tries int := 0;
  v float8[];
  t float8[];
  found record;
  planned record;
  done record;
  settled boolean;
BEGIN
  LOOP
    IF pools AND NOT loaded THEN
      SELECT array_agg(u.id ORDER BY u.id), array_agg(u.place ORDER BY u.id) INTO ids, places FROM (
        SELECT i.id, i.place FROM unnest(ids, places) i(id, place)
        UNION
        SELECT p.prefix || convert_to(g::text, 'UTF8') || p.suffix, p.first + g
        FROM unnest(pool_prefixes, pool_suffixes, pool_firsts, pool_sizes) p(prefix, suffix, first, size),
          generate_series(0, p.size - 1) g
      ) u;
    END IF;
    loaded := pools;
    IF cardinality(ids) = total THEN
      SELECT array_agg(s.value ORDER BY i.place), array_agg(s.ts ORDER BY i.place) INTO v, t
      FROM unnest(ids, places) i(id, place) LEFT JOIN tidegate.states s ON s.id = i.id;
    ELSE
      v := array_fill(NULL::float8, ARRAY[total]);
      t := v;
      FOR found IN
        SELECT i.place, s.value, s.ts FROM unnest(ids, places) i(id, place) JOIN tidegate.states s ON s.id = i.id
      LOOP
        v[found.place] := found.value;
        t[found.place] := found.ts;
      END LOOP;
    END IF;
    planned := tidegate.evaluate(v, t, specs, program, now, pools);
    IF planned.wants_pools THEN
      pools := true;
      CONTINUE;
    END IF;
    EXIT WHEN NOT true = ANY (planned.wrote);
    IF cardinality(ids) = 1 THEN
      done := tidegate.settle(
        ids, places, v, t, planned.v, planned.t, planned.wrote, specs, program, now, pools, true);
      settled := done.settled;
    ELSE
      BEGIN
        done := tidegate.settle(
          ids, places, v, t, planned.v, planned.t, planned.wrote, specs, program, now, pools, false);
        settled := true;
      EXCEPTION WHEN SQLSTATE 'TG001' THEN
        settled := false;
      END;
    END IF;
    IF settled THEN
      v := done.before_v;
      t := done.before_t;
      EXIT;
    END IF;
    tries := tries + 1;
    IF tries = 20 THEN
      RAISE EXCEPTION 'tidegate: the rows kept changing while they were being locked' USING ERRCODE = '40001';
    END IF;
  END LOOP;
  RETURN now || ';' || pools::int || ';' || array_to_string(v, ',', '') || ';' || array_to_string(t, ',', '');
END $$;
