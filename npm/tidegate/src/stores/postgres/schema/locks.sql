-- What bounds a statement in time, and finds the rows that other transactions have locked.

-- Passes an answer on. Where the statement has taken more than "most" ms since the server received it, it is undone as a
-- whole: by then its callers have been answered.
CREATE OR REPLACE FUNCTION tidegate.in_time(answer text, most float8)
RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000 > most THEN
    RAISE EXCEPTION 'tidegate: the statement took more than % ms, and was undone', most USING ERRCODE = 'TG002';
  END IF;
  RETURN answer;
END $$;

-- Places (from 1) of the ids whose rows another transaction has locked or is inserting, joined by commas. It waits for
-- none of them, and changes nothing.
CREATE OR REPLACE FUNCTION tidegate.locked(ids bytea[])
RETURNS text LANGUAGE plpgsql VOLATILE
SET lock_timeout = 1 SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
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
    -- A row that is being inserted cannot be seen: only to insert it as well shows it. Each insertion is undone.
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
