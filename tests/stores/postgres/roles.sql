-- A role that only decides: it can read and write the limits, and change no schema.
CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA tidegate TO app;
GRANT SELECT, INSERT, UPDATE, DELETE ON tidegate.states TO app;
-- Only where your database revokes the default, by which every role may call every function; again after each upgrade:
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA tidegate TO app;
