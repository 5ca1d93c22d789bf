-- The one table: two numbers for each limit and key. Room on each page lets an update stay on it, beside no index.

CREATE TABLE IF NOT EXISTS tidegate.states (
  id bytea NOT NULL,
  value float8 NOT NULL,
  ts float8 NOT NULL,
  CONSTRAINT states_pkey PRIMARY KEY (id)
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);
