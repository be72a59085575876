-- Play-offs: a game is a job for one GPU. And what a grading costs is the time on its device.

-- Keep a result. _seconds: that the device spent; while one submission is measured, the next waits
-- for its turn. False: the attempt holds nothing any more, and the result does not count.
DROP FUNCTION arena_finish(uuid, text, text, jsonb);
CREATE FUNCTION arena_finish(
    _attempt uuid, _id text, _report text, _entry jsonb, _seconds double precision
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    held gradings;
BEGIN
    SELECT * FROM gradings WHERE attempt = _attempt AND state = 'grading' FOR UPDATE INTO held;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM arena_keep_result(held, _id, _report, _entry, 'finished');
    UPDATE gradings SET seconds = coalesce(held.seconds, 0) + _seconds WHERE id = held.id;
    RETURN TRUE;
END $$;

-- A key can be made by the organiser's page, which itself may make no roles.
ALTER FUNCTION arena_new_machine(text, text) SECURITY DEFINER;

-- A game on this worker's GPU, before the gradings that wait; its id.
CREATE FUNCTION arena_call_game(_playoff bigint, _worker text) RETURNS uuid
    LANGUAGE plpgsql AS $$
DECLARE
    game uuid;
BEGIN
    INSERT INTO games (playoff, worker) VALUES (_playoff, _worker) RETURNING id INTO game;
    UPDATE games SET job = (
        SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[ROW(
            'gpu ' || _worker, 'play', 1000000, NULL, NULL,
            jsonb_build_object('game', game), NULL
        )::procrastinate_job_to_defer_v1]))
    ) WHERE id = game;
    RETURN game;
END $$;

-- Begin a game; its players in order. No row: there is nothing to do.
CREATE FUNCTION arena_take_game(_game uuid, _session uuid)
    RETURNS TABLE (submission text, name text, author text, source text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
#variable_conflict use_column
DECLARE
    held games;
BEGIN
    UPDATE games SET state = 'playing', seen = now()
        WHERE id = _game AND state = 'queued' AND worker = (
            SELECT id FROM workers WHERE session = _session AND seen IS NOT NULL
        ) RETURNING * INTO held;
    RETURN QUERY SELECT s.id, s.name, p.name, s.source
        FROM players JOIN submissions s ON s.id = players.submission
            JOIN people p ON p.id = s.person
        WHERE players.playoff = held.playoff ORDER BY players.place;
END $$;

-- A sign of life. False: the game is another's, or nobody's any more.
CREATE FUNCTION arena_play_on(_game uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    UPDATE games SET seen = now() WHERE id = _game AND state = 'playing';
    RETURN FOUND;
END $$;

-- What came of it: rounds, or why there are none, or neither where it was given back.
CREATE FUNCTION arena_finish_game(_game uuid, _found jsonb, _failure text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    UPDATE games SET found = _found, failure = _failure, state = CASE
            WHEN _found IS NOT NULL THEN 'finished'
            WHEN _failure IS NOT NULL THEN 'failed'
            ELSE 'died' END
        WHERE id = _game AND state = 'playing';
    RETURN FOUND;
END $$;
