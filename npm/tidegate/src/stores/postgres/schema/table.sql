-- The one table: the two numbers of each limit and key, and full_at, the time from which the row is full, ms since the Unix
-- epoch. full_at has no index, and pages have free space, so an update stays on its page and changes no index.

CREATE TABLE IF NOT EXISTS tidegate.states (
  id bytea NOT NULL,
  value float8 NOT NULL,
  ts float8 NOT NULL,
  full_at float8 NOT NULL DEFAULT 'Infinity',
  CONSTRAINT states_pkey PRIMARY KEY (id)
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
