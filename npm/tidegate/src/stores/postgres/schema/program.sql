-- Any other mix of requests in one statement: several in turn on one row, several rows all or nothing, shards and their
-- pool, reservations, giving and charging. Specs have seven numbers: op (0 take, 1 check, 2 give, 3 charge), rate,
-- period, capacity, floor, start (NaN: token bucket), count. The program is a list of whole numbers:
--
-- | unit | meaning |
-- |---|---|
-- | 0, place, spec, repeats | a request, so often, on one row |
-- | 1, how many, members | all of these or none |
--
-- | member | meaning |
-- |---|---|
-- | 0, place, spec | a row |
-- | 1, a, b, first, many, whole, shard | the better of the shards at a and b; where it denies, the pool |
-- | 2, 0, 0, first, many, whole, shard | the pool: the rows from place `first` on |

-- What one request does to one state: whether it is granted, and what it writes (NULL: nothing).
CREATE OR REPLACE FUNCTION tidegate.apply(
  v float8, t float8, specs float8[], spec int, now float8, OUT ok boolean, OUT new_value float8, OUT new_ts float8
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  o int := (spec - 1) * 7;
  op float8 := specs[o + 1];
  rate float8 := specs[o + 2];
  period float8 := specs[o + 3];
  capacity float8 := specs[o + 4];
  floor_value float8 := specs[o + 5];
  start float8 := NULLIF(specs[o + 6], 'NaN');
  count float8 := specs[o + 7];
  x float8 := tidegate.refill_value(rate, period, capacity, start, v, t, now);
  at float8 := tidegate.refill_ts(period, start, v, t, now);
BEGIN
  ok := true;
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

-- Tokens that the shards of a pool lack at "now", summed in their order; a broken clock's state counts as none.
CREATE OR REPLACE FUNCTION tidegate.missing(v float8[], t float8[], specs float8[], spec int, clock float8, now float8)
RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT sum(CASE
    WHEN i.v IS NULL OR i.t - clock > 3600000::float8 THEN 0::float8
    ELSE specs[spec * 7 - 3] - tidegate.refill_value(
      specs[spec * 7 - 5], specs[spec * 7 - 4], specs[spec * 7 - 3], NULLIF(specs[spec * 7 - 1], 'NaN'), i.v, i.t, now)
  END ORDER BY i.n)
  FROM unnest(v, t) WITH ORDINALITY i(v, t, n)
$$;

-- All shards as one: whether it is granted, and what every shard then holds (NULL: nothing is written).
CREATE OR REPLACE FUNCTION tidegate.apply_pool(
  v float8[], t float8[], specs float8[], whole int, shard int, now float8,
  OUT ok boolean, OUT new_value float8, OUT new_ts float8[]
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  op float8 := specs[whole * 7 - 6];
  capacity float8 := specs[whole * 7 - 3];
  floor_value float8 := specs[whole * 7 - 2];
  count float8 := specs[whole * 7];
  lacking float8 := tidegate.missing(v, t, specs, shard, now, now);
  x float8 := (capacity - lacking) - count;
BEGIN
  ok := op > 1 OR NOT (capacity - count < floor_value OR x < floor_value);
  IF NOT ok OR (op = 2 AND NOT EXISTS (
    SELECT FROM unnest(v, t) i(v, t) WHERE i.v IS NOT NULL AND NOT i.t - now > 3600000))
  THEN RETURN; END IF;
  IF count > 0 THEN
    lacking := CASE WHEN op = 2 THEN GREATEST(0::float8, lacking - count) ELSE lacking + count END;
    -- Divided by way of returned(), since a quotient may be too small for a double.
    new_value := specs[shard * 7 - 3] - tidegate.returned(1, lacking, cardinality(v));
    SELECT array_agg(tidegate.refill_ts(specs[shard * 7 - 4], NULLIF(specs[shard * 7 - 1], 'NaN'), i.v, i.t, now)
      ORDER BY i.n) INTO new_ts FROM unnest(v, t) WITH ORDINALITY i(v, t, n);
    v := array_fill(new_value, ARRAY[cardinality(v)]);
    t := new_ts;
  END IF;
  IF op < 2 AND x < 0 THEN
    ok := now < 4503599627370496 AND capacity - tidegate.missing(v, t, specs, shard, now, 4503599627370496) >= 0;
  END IF;
  IF op = 1 OR NOT ok THEN
    new_value := NULL;
  END IF;
END $$;

-- Carries a program out on states: what they are then, and which are to be written. Where the rows of the pools are not
-- there yet and it comes to them, it stops and asks for them.
CREATE OR REPLACE FUNCTION tidegate.evaluate(
  INOUT v float8[], INOUT t float8[], specs float8[], program int[], now float8, pools boolean,
  OUT wrote boolean[], OUT wants_pools boolean
) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  p int := 1;
  k int;
  o int;
  x float8;
  granted int;
  did record;
  members int;
  last int;
  sound boolean;
  yes boolean;
  member_ok boolean;
  write_places int[];
  write_values float8[];
  write_ts float8[];
BEGIN
  wrote := array_fill(false, ARRAY[cardinality(v)]);
  wants_pools := false;
  WHILE p <= cardinality(program) LOOP
    IF program[p] = 0 THEN
      k := program[p + 1];
      o := (program[p + 2] - 1) * 7;
      IF NOT (v[k] IS NULL OR tidegate.is_state(v[k], t[k])) THEN
        NULL;
      ELSIF specs[o + 1] = 0 AND specs[o + 5] = 0 AND specs[o + 7] > 0 THEN
        x := tidegate.refill_value(specs[o + 2], specs[o + 3], specs[o + 4], NULLIF(specs[o + 6], 'NaN'), v[k], t[k], now);
        granted := 0;
        WHILE granted < program[p + 3] AND x >= specs[o + 7] LOOP
          x := x - specs[o + 7];
          granted := granted + 1;
        END LOOP;
        IF granted > 0 THEN
          t[k] := tidegate.refill_ts(specs[o + 3], NULLIF(specs[o + 6], 'NaN'), v[k], t[k], now);
          v[k] := x;
          wrote[k] := true;
        END IF;
      ELSE
        FOR i IN 1 .. program[p + 3] LOOP
          did := tidegate.apply(v[k], t[k], specs, program[p + 2], now);
          EXIT WHEN did.new_value IS NULL;
          v[k] := did.new_value;
          t[k] := did.new_ts;
          wrote[k] := true;
        END LOOP;
      END IF;
      p := p + 4;
    ELSE
      members := program[p + 1];
      p := p + 2;
      sound := true;
      yes := true;
      write_places := '{}';
      write_values := '{}';
      write_ts := '{}';
      FOR m IN 1 .. members LOOP
        IF program[p] = 0 THEN
          k := program[p + 1];
          sound := sound AND (v[k] IS NULL OR tidegate.is_state(v[k], t[k]));
          did := tidegate.apply(v[k], t[k], specs, program[p + 2], now);
          yes := yes AND did.ok;
          IF did.new_value IS NOT NULL THEN
            write_places := write_places || k;
            write_values := write_values || did.new_value;
            write_ts := write_ts || did.new_ts;
          END IF;
          p := p + 3;
        ELSE
          member_ok := false;
          o := (program[p + 6] - 1) * 7;
          IF program[p] = 1 THEN
            k := program[p + 1];
            FOR i IN 1 .. 2 LOOP
              sound := sound
                AND (v[program[p + i]] IS NULL OR tidegate.is_state(v[program[p + i]], t[program[p + i]]));
            END LOOP;
            IF tidegate.refill_value(specs[o + 2], specs[o + 3], specs[o + 4], NULLIF(specs[o + 6], 'NaN'),
                v[program[p + 2]], t[program[p + 2]], now)
              > tidegate.refill_value(specs[o + 2], specs[o + 3], specs[o + 4], NULLIF(specs[o + 6], 'NaN'),
                v[k], t[k], now)
            THEN k := program[p + 2]; END IF;
            did := tidegate.apply(v[k], t[k], specs, program[p + 6], now);
            member_ok := did.ok;
            IF did.new_value IS NOT NULL THEN
              write_places := write_places || k;
              write_values := write_values || did.new_value;
              write_ts := write_ts || did.new_ts;
            END IF;
          END IF;
          IF sound AND NOT member_ok THEN
            IF NOT pools THEN
              wants_pools := true;
              RETURN;
            END IF;
            k := program[p + 3];
            last := k + program[p + 4] - 1;
            FOR i IN k .. last LOOP
              sound := sound AND (v[i] IS NULL OR tidegate.is_state(v[i], t[i]));
            END LOOP;
            did := tidegate.apply_pool(v[k:last], t[k:last], specs, program[p + 5], program[p + 6], now);
            member_ok := did.ok;
            IF did.new_value IS NOT NULL THEN
              write_places := write_places || ARRAY(SELECT generate_series(k, last));
              write_values := write_values || array_fill(did.new_value, ARRAY[program[p + 4]]);
              write_ts := write_ts || did.new_ts;
            END IF;
          END IF;
          yes := yes AND member_ok;
          p := p + 7;
        END IF;
      END LOOP;
      IF sound AND yes THEN
        FOR i IN 1 .. cardinality(write_places) LOOP
          v[write_places[i]] := write_values[i];
          t[write_places[i]] := write_ts[i];
          wrote[write_places[i]] := true;
        END LOOP;
      END IF;
    END IF;
  END LOOP;
END $$;
