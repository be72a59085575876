-- What the database itself enforces and reports, whoever changes it.

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

-- Tell the watchers of a submission that something has changed.
CREATE FUNCTION arena_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('arena', NEW.submission);
    RETURN NULL;
END $$;

CREATE TRIGGER arena_tell AFTER INSERT OR UPDATE ON gradings
    FOR EACH ROW EXECUTE FUNCTION arena_tell();

-- Count the changes of a board, so that whoever has one knows whether it is the newest. The number
-- is in a row, because others see a row's new value together with the change that it counts, and a
-- sequence's earlier. The row is locked last, at the commit, so that this causes no deadlock.
INSERT INTO board_version VALUES (1);

CREATE FUNCTION arena_count_board() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Once in a transaction, however many rows it changes.
    UPDATE board_version SET number = number + 1 WHERE xmin <> pg_current_xact_id()::xid;
    PERFORM pg_notify('arena', 'board');
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER arena_count_board
    AFTER UPDATE OF counts, withdrawn, disqualified ON submissions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arena_count_board();

-- A result is entered together with what makes it count; an import is an entry alone.
CREATE CONSTRAINT TRIGGER arena_count_board AFTER INSERT ON entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arena_count_board();

CREATE OR REPLACE VIEW counted AS
    SELECT g.report AS id, true AS graded_here, s.received AS submitted
        FROM submissions s JOIN gradings g ON g.id = s.counts
        WHERE s.withdrawn IS NULL AND s.disqualified IS NULL
    UNION ALL
    SELECT e.id, false, NULL FROM entries e
        WHERE NOT EXISTS (SELECT FROM gradings g WHERE g.report = e.id);

-- Nobody changes a line of the audit log.
CREATE FUNCTION arena_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END $$;

CREATE TRIGGER arena_keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION arena_keep_audit();
