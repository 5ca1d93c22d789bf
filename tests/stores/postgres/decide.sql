-- 10 tokens a minute, at most 20. The key is what you limit, such as a user.
SELECT ok, value, retry_at FROM tidegate.decide('take', 'send', 'user 7', rate => 10, period => 60000, capacity => 20);
SELECT u.id, d.ok
FROM (VALUES ('user 7'), ('user 8')) AS u (id),
  LATERAL tidegate.decide('take', 'send', u.id, 10, 60000) AS d;
