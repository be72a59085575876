// Runs blocks on the vector path: a unit of several threads is one coroutine. Thread u of the
// context stands for unit u.

const long long MAX_POLLS = 1ll << 23;  // some seconds

// Selects the units of the next round: those that yielded or whose mbarrier phase is complete, or
// all live units if they all wait at the barrier. Returns the number of live units.
__device__ long long choose_units(Context* c, long long units, bool* opens, long long* moving) {
    long long alive = 0, waiting = 0;
    *moving = 0;
    for (long long u = 0; u < units; ++u) {
        Thread* unit = c->thread + u;
        if (unit->state == STATE_EXITED) continue;
        alive += 1;
        if (unit->state == STATE_MBARRIER && phase_is_over(c, u)) unit->state = STATE_YIELD;
        waiting += unit->state == STATE_BARRIER;
        *moving += unit->state == STATE_YIELD;
    }
    *opens = waiting == alive;
    return alive;
}

// Runs one block, watched if its context has a Watch. Returns whether all units reached their end.
// If one did not, if none can continue, or if they poll too long for a value that other lanes may
// have to write, threads must run the block again.
__device__ bool run_units(Context* c, long long units, bool backward) {
    begin_block(c);
    c->fault = 0;
    for (long long u = 0; u < units; ++u) c->thread[u].state = STATE_YIELD;
    long long polls = 0, moving = units;
    bool opens = false;
    for (bool started = false;; started = true) {
        for (long long i = 0; i < units; ++i) {
            long long u = backward ? units - 1 - i : i;
            Thread* unit = c->thread + u;
            if (unit->state != STATE_YIELD && !(opens && unit->state == STATE_BARRIER)) continue;
            if (started) host_resume(unit->handle);
            else unit->handle = host_start(c->entry, c, u);
            if (unit->state == STATE_LEFT || is_doubtful(c)) return false;
        }
        long long alive = choose_units(c, units, &opens, &moving);
        bool is_diverted = c->pending_bytes != 0;  // an atomic operation on an input
        c->pending_bytes = 0;
        if (c->fault || is_diverted) return false;
        if (!alive) return true;
        if (opens && c->watch && !passes_barrier(c, units)) return false;
        polls = opens ? 0 : polls + 1;
        if (*c->stop || (!opens && !moving) || polls > MAX_POLLS) return false;
        backward = !backward;
    }
}

// Takes blocks from the list, as rt_run does. left: receives a 1 for each block that threads must
// run. It leaves all other blocks to threads, too, if threads must run most blocks; if they must run
// the first one and blocks depend on one another; or if a watched access may be an error.
extern "C" __device__ void rt_run_units(Context* c, unsigned long long* next, const long long* blocks,
                                        long long count, long long units, long long depend,
                                        unsigned char* left) {
    long long done = 0, given_up = 0;
    for (;;) {
        unsigned long long i = atomicAdd(next, 1ull);
        if (i >= count) return;
        bool hopeless = given_up >= 4 && given_up > done, is_done = false;
        place_cluster(c, blocks[i]);
        if (!hopeless && !*c->stop) {
            if (c->watch) begin_watch(c);
            is_done = run_units(c, units, blocks[i] & 1) && !is_doubtful(c);
            if (c->watch) end_watch(c, is_done);
        }
        if (is_done) {
            done += 1;
            continue;
        }
        give_up(c);
        left[i] = 1;
        given_up += 1;
        if (depend || is_doubtful(c)) *(volatile unsigned char*)c->stop = 1;
    }
}
