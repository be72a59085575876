-- What the database itself holds to, and the only things that a worker can ask of it.
-- A worker's role may execute these functions and read or write no table.

-- A grading changes its state only as harness/arena/states.py says.
CREATE FUNCTION arena_hold_transitions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (
        ('queued', 'grading'), ('queued', 'cancelled'),
        ('grading', 'queued'), ('grading', 'done'), ('grading', 'cancelled')
    ) THEN
        RAISE EXCEPTION 'a grading that is % cannot become %', OLD.state, NEW.state;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER arena_hold_transitions BEFORE UPDATE OF state ON gradings
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION arena_hold_transitions();

-- Who watches is told that something has changed, and then looks.
CREATE FUNCTION arena_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('arena', NEW.submission);
    RETURN NULL;
END $$;

CREATE TRIGGER arena_tell AFTER INSERT OR UPDATE ON gradings
    FOR EACH ROW EXECUTE FUNCTION arena_tell();

-- Counts what changes a board, so that whoever has one knows whether it is the newest.
CREATE SEQUENCE board_version;
SELECT nextval('board_version'); -- the first number that is drawn does not show

CREATE FUNCTION arena_count_board() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('board_version'), pg_notify('arena', 'board');
    RETURN NULL;
END $$;

CREATE TRIGGER arena_count_board AFTER UPDATE OF counts, withdrawn, disqualified ON submissions
    FOR EACH ROW EXECUTE FUNCTION arena_count_board();

-- An audit log is added to, by whomever.
CREATE FUNCTION arena_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END $$;

CREATE TRIGGER arena_keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION arena_keep_audit();

-- A job in the queue whose turn is earlier comes first; of equal turns the older job.
CREATE FUNCTION arena_enqueue(_grading bigint) RETURNS bigint
    LANGUAGE sql AS $$
    UPDATE gradings SET job = (
        SELECT unnest(procrastinate_defer_jobs_v1(ARRAY[ROW(
            'gradings', 'grade', -turn, NULL, NULL, jsonb_build_object('grading', id), NULL
        )::procrastinate_job_to_defer_v1]))
    ) WHERE id = _grading RETURNING job
$$;

-- Begin an attempt at the grading of a job that was fetched. No row: there is nothing to do.
CREATE FUNCTION arena_take(_job bigint, _worker text)
    RETURNS TABLE (attempt uuid, submission text, name text, author text, source text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
#variable_conflict use_column
DECLARE
    held gradings;
BEGIN
    UPDATE gradings SET
            state = 'grading', attempt = gen_random_uuid(), attempts = attempts + 1,
            started = coalesce(started, now()), seen = now(), progress = NULL
        WHERE job = _job AND state = 'queued'
            AND EXISTS (SELECT FROM procrastinate_jobs WHERE id = _job AND status = 'doing')
        RETURNING * INTO held;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO attempts (id, grading, number, worker)
        VALUES (held.attempt, held.id, held.attempts, _worker);
    RETURN QUERY SELECT held.attempt, s.id, s.name, p.name, s.source
        FROM submissions s JOIN people p ON p.id = s.person WHERE s.id = held.submission;
END $$;

-- A sign of life, and how far it is. False: the attempt holds nothing any more.
CREATE FUNCTION arena_go_on(_attempt uuid, _progress jsonb) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    UPDATE gradings SET seen = now(), progress = _progress
        WHERE attempt = _attempt AND state = 'grading';
    RETURN FOUND;
END $$;

-- Keep a result. False: the attempt holds nothing any more, and the result does not count.
CREATE FUNCTION arena_finish(_attempt uuid, _id text, _report text, _entry jsonb) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    held gradings;
BEGIN
    SELECT * FROM gradings WHERE attempt = _attempt AND state = 'grading' FOR UPDATE INTO held;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM arena_keep_result(held, _id, _report, _entry, 'finished');
    RETURN TRUE;
END $$;

CREATE FUNCTION arena_keep_result(held gradings, _id text, _report text, _entry jsonb, _fate text)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports VALUES (_id, _report);
    INSERT INTO entries SELECT * FROM jsonb_populate_record(NULL::entries, _entry);
    PERFORM arena_end_attempt(held, _fate);
    UPDATE gradings SET
            state = 'done', attempt = NULL, ended = now(), progress = NULL,
            verdict = _entry->>'verdict', report = _id
        WHERE id = held.id;
    IF held.rejudge IS NULL THEN
        UPDATE submissions SET counts = held.id WHERE id = held.submission;
    END IF;
END $$;

-- What an attempt spent is counted however it ended; a dead one's time runs to its last sign.
CREATE FUNCTION arena_end_attempt(held gradings, _fate text) RETURNS void LANGUAGE sql AS $$
    UPDATE attempts SET ended = now(), fate = _fate WHERE id = held.attempt;
    UPDATE gradings SET seconds = coalesce(seconds, 0) + extract(epoch FROM
            CASE _fate WHEN 'died' THEN held.seen ELSE now() END
            - (SELECT started FROM attempts WHERE id = held.attempt))
        WHERE id = held.id
$$;

-- Back to the queue, keeping its turn.
CREATE FUNCTION arena_let_go(held gradings, _fate text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM arena_end_attempt(held, _fate);
    UPDATE gradings SET state = 'queued', attempt = NULL, progress = NULL WHERE id = held.id;
    UPDATE procrastinate_jobs SET status = 'failed', abort_requested = false
        WHERE id = held.job AND status = 'doing';
    PERFORM arena_enqueue(held.id);
END $$;

-- A worker that is told to stop gives back what it holds.
CREATE FUNCTION arena_give_back(_attempt uuid) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    held gradings;
BEGIN
    SELECT * FROM gradings WHERE attempt = _attempt AND state = 'grading' FOR UPDATE INTO held;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM arena_let_go(held, 'given back');
    RETURN TRUE;
END $$;
