-- What a worker asks about itself: to join, to be told what to do, to leave.

-- A job goes to the queue of the GPU's model that is to grade it, or to the one that all serve.
CREATE OR REPLACE FUNCTION arena_enqueue(_grading bigint) RETURNS bigint
    LANGUAGE sql AS $$
    UPDATE gradings SET job = (
        SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[ROW(
            coalesce('model ' || model, 'gradings'), 'grade', -turn, NULL, NULL,
            jsonb_build_object('grading', id), NULL
        )::procrastinate_job_to_defer_v1]))
    ) WHERE id = _grading RETURNING job
$$;

-- One worker for a GPU: who shows signs of life keeps it, unless its own supervisor has started it
-- again. A session: it is in. None: another judge, or another worker has the GPU.
CREATE FUNCTION arena_join(
    _worker text, _crew uuid, _name text, _model text, _judge text, _cases integer, _source text,
    _clock timestamptz, _lease double precision
) RETURNS TABLE (
    session uuid, judge text, cases integer, source text, held_by text, clock_ahead double precision
)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
#variable_conflict use_column
DECLARE
    ours edition;
    ahead double precision := extract(epoch FROM _clock - clock_timestamp());
    own bigint := (SELECT id FROM machines WHERE login = session_user);
    held workers;
    entered uuid;
BEGIN
    SELECT * FROM edition INTO ours;
    IF (_judge, _cases, _source) IS DISTINCT FROM (ours.judge, ours.cases, ours.source) THEN
        RETURN QUERY SELECT NULL::uuid, ours.judge, ours.cases, ours.source, NULL::text, ahead;
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('arena worker ' || _worker));
    SELECT * FROM workers WHERE id = _worker INTO held;
    IF held.seen > now() - make_interval(secs => _lease) AND held.crew <> _crew THEN
        RETURN QUERY SELECT NULL::uuid, ours.judge, ours.cases, ours.source,
            held.name || coalesce(' (' || (SELECT name FROM machines WHERE id = held.machine) || ')', ''),
            ahead;
        RETURN;
    END IF;
    INSERT INTO workers (id, name, machine, model, session, crew, seen, clock_ahead, draining)
        VALUES (_worker, _name, own, _model, gen_random_uuid(), _crew, now(), ahead, false)
        ON CONFLICT (id) DO UPDATE SET
            name = _name, machine = own, model = _model, session = gen_random_uuid(),
            joined = CASE workers.crew WHEN _crew THEN workers.joined ELSE now() END,
            crew = _crew, seen = now(), clock_ahead = ahead, draining = false
        RETURNING session INTO entered;
    RETURN QUERY SELECT entered, ours.judge, ours.cases, ours.source, NULL::text, ahead;
END $$;

-- A sign of life. What the worker is to do now; nothing: another has its GPU.
CREATE FUNCTION arena_beat(_session uuid) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    held workers;
    latest checkups;
BEGIN
    UPDATE workers SET seen = now() WHERE session = _session AND seen IS NOT NULL
        RETURNING * INTO held;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF held.draining THEN
        RETURN 'leave';
    ELSIF held.organiser_says = 'set aside' THEN
        RETURN 'rest';
    ELSIF held.model IS NULL THEN
        RETURN 'serve';
    END IF;
    SELECT * FROM checkups WHERE worker = held.id ORDER BY at DESC LIMIT 1 INTO latest;
    IF latest.id IS NULL OR latest.at < now() - interval '1 day'
            OR latest.at < held.joined - interval '1 hour' THEN
        RETURN 'check up';
    ELSIF held.organiser_says = 'in service' THEN
        RETURN 'serve';
    ELSIF latest.judged IS NULL OR latest.fault IS NOT NULL THEN
        RETURN 'rest';
    END IF;
    RETURN 'serve';
END $$;

CREATE FUNCTION arena_leave(_session uuid) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$
    UPDATE workers SET seen = NULL WHERE session = _session
$$;

-- Workers of the machine that asks are to end after what they have in hand. How many still live.
CREATE FUNCTION arena_drain(_lease double precision) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = public AS $$
    WITH told AS (
        UPDATE workers SET draining = true
            WHERE machine = (SELECT id FROM machines WHERE login = session_user)
                AND seen > now() - make_interval(secs => _lease)
            RETURNING 1
    ) SELECT count(*) FROM told
$$;

-- What a check-up found. False: another has the GPU.
CREATE FUNCTION arena_check_up(_session uuid, _found jsonb) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    INSERT INTO checkups (worker, found)
        SELECT id, _found FROM workers WHERE session = _session AND seen IS NOT NULL;
    RETURN FOUND;
END $$;

-- Begin an attempt at the grading of a job that was fetched. No row: there is nothing to do.
DROP FUNCTION arena_take(bigint, text);
CREATE FUNCTION arena_take(_job bigint, _session uuid)
    RETURNS TABLE (
        attempt uuid, submission text, name text, author text, source text, began timestamptz
    )
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
#variable_conflict use_column
DECLARE
    taker workers;
    held gradings;
BEGIN
    SELECT * FROM workers WHERE session = _session AND seen IS NOT NULL INTO taker;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE gradings SET
            state = 'grading', attempt = gen_random_uuid(), attempts = attempts + 1,
            started = coalesce(started, now()), seen = now(), progress = NULL
        WHERE job = _job AND state = 'queued'
            AND EXISTS (SELECT FROM procrastinate_jobs WHERE id = _job AND status = 'doing')
        RETURNING * INTO held;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO attempts (id, grading, number, worker, worker_id)
        VALUES (held.attempt, held.id, held.attempts, taker.name, taker.id);
    RETURN QUERY SELECT held.attempt, s.id, s.name, p.name, s.source, now()
        FROM submissions s JOIN people p ON p.id = s.person WHERE s.id = held.submission;
END $$;

-- A login for one machine, with a worker's rights; its name.
CREATE FUNCTION arena_new_machine(_name text, _password text) RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
    login text;
    crew text := current_database() || '_worker';
BEGIN
    INSERT INTO machines (name, login) VALUES (_name, gen_random_uuid()::text)
        RETURNING id INTO number;
    login := crew || '_' || number;
    EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE %I', login, _password, crew);
    UPDATE machines SET login = arena_new_machine.login WHERE id = number;
    RETURN login;
END $$;

-- Takes the rights away at once, also from those who are connected. False: there was none.
CREATE FUNCTION arena_revoke_machine(_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    login text;
BEGIN
    UPDATE machines SET revoked = now() WHERE id = _id AND revoked IS NULL
        RETURNING machines.login INTO login;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('REVOKE %I FROM %I', current_database() || '_worker', login);
    EXECUTE format('ALTER ROLE %I NOLOGIN', login);
    UPDATE workers SET seen = NULL WHERE machine = _id;
    RETURN TRUE;
END $$;
