-- Workers elsewhere; play-offs, of which a game is a job for one GPU; and what a grading costs is the
-- time on its device.

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

-- How this arena judges, and what time it is here.
CREATE FUNCTION arena_edition()
    RETURNS TABLE (judge text, cases integer, source text, quick boolean, clock timestamptz)
    LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$
    SELECT judge, cases, source, quick, clock_timestamp() FROM edition
$$;

-- One worker for a GPU: who shows signs of life keeps it, unless its own supervisor has started it
-- again. A session: it is in. None: another judge, or another worker has the GPU.
DROP FUNCTION arena_join(
    text, uuid, text, text, text, integer, text, timestamptz, double precision
);
CREATE FUNCTION arena_join(
    _worker text, _crew uuid, _name text, _model text,
    _judge text, _cases integer, _source text, _quick boolean,
    _clock timestamptz, _lease double precision
) RETURNS TABLE (session uuid, held_by text, clock_ahead double precision)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
#variable_conflict use_column
DECLARE
    ahead double precision := extract(epoch FROM _clock - clock_timestamp());
    own bigint := (SELECT id FROM machines WHERE login = session_user);
    held workers;
    entered uuid;
    drained boolean;
BEGIN
    IF NOT EXISTS (
        SELECT FROM edition
            WHERE (judge, cases, source, quick) = (_judge, _cases, _source, _quick)
    ) THEN
        RETURN QUERY SELECT NULL::uuid, NULL::text, ahead;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('arena worker ' || _worker));
    SELECT * FROM workers WHERE id = _worker INTO held;
    IF held.seen > now() - make_interval(secs => _lease) AND held.crew <> _crew THEN
        RETURN QUERY SELECT NULL::uuid, held.name, ahead;
        RETURN;
    END IF;
    -- Who was still starting when its machine was drained leaves with the others.
    drained := EXISTS (SELECT FROM workers WHERE crew = _crew AND draining);
    INSERT INTO workers (id, name, machine, model, session, crew, seen, clock_ahead, draining)
        VALUES (_worker, _name, own, _model, gen_random_uuid(), _crew, now(), ahead, drained)
        ON CONFLICT (id) DO UPDATE SET
            name = _name, machine = own, model = _model, session = gen_random_uuid(),
            joined = CASE workers.crew WHEN _crew THEN workers.joined ELSE now() END,
            crew = _crew, seen = now(), clock_ahead = ahead, draining = drained
        RETURNING session INTO entered;
    RETURN QUERY SELECT entered, NULL::text, ahead;
END $$;

-- A login for one machine, with a worker's rights; its name. The organiser's page calls it, which
-- itself may make no roles.
CREATE OR REPLACE FUNCTION arena_new_machine(_name text, _password text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    number bigint;
    role text;
    crew text := current_database() || '_worker';
BEGIN
    INSERT INTO machines (name, login) VALUES (_name, gen_random_uuid()::text)
        RETURNING id INTO number;
    role := crew || '_' || number;
    EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE %I', role, _password, crew);
    UPDATE machines SET login = role WHERE id = number;
    RETURN role;
END $$;

-- Takes the rights away at once, also from those who are connected. False: there was none.
CREATE OR REPLACE FUNCTION arena_revoke_machine(_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    role text;
BEGIN
    UPDATE machines SET revoked = now() WHERE id = _id AND revoked IS NULL
        RETURNING login INTO role;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('REVOKE %I FROM %I', current_database() || '_worker', role);
    EXECUTE format('ALTER ROLE %I NOLOGIN', role);
    UPDATE workers SET seen = NULL WHERE machine = _id;
    RETURN TRUE;
END $$;

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
