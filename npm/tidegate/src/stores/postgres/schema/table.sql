-- The one table: two numbers for each limit and key, and the time (epoch ms) from which the row is full and may be
-- deleted. That has no index, and pages have room: so an update stays on its page and touches no index.

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
