// Runs blocks on the vector path: a unit of several threads is one coroutine. Thread u of the context
// stands for unit u.

// Runs one block. Returns whether all units came to their end; if one did not, threads must run the
// block again.
__device__ bool run_units(Context* c, long long units, bool backward) {
    begin_block(c);
    for (long long u = 0; u < units; ++u) c->thread[u].state = STATE_YIELD;
    for (bool started = false;; started = true) {
        int alive = 0;
        for (long long i = 0; i < units; ++i) {
            long long u = backward ? units - 1 - i : i;
            Thread* unit = c->thread + u;
            if (unit->state == STATE_EXITED) continue;
            if (started) host_resume(unit->handle);
            else unit->handle = host_start(c->entry, c, u);
            if (unit->state == STATE_LEFT) return false;
            alive += unit->state != STATE_EXITED;
        }
        if (!alive) return true;
        if (*c->stop) return false;
        backward = !backward;
    }
}

// Takes blocks from the list, as rt_run does. left: gets a 1 for each block that threads must run.
// When most blocks end there, this gives all others up as well.
extern "C" __device__ void rt_run_units(Context* c, unsigned long long* next, const long long* blocks,
                                        long long count, long long units, unsigned char* left) {
    long long done = 0, given_up = 0;
    for (;;) {
        unsigned long long i = atomicAdd(next, 1ull);
        if (i >= count) return;
        bool hopeless = given_up >= 4 && given_up > done;
        if (!hopeless && !*c->stop) {
            place_cluster(c, blocks[i]);
            if (run_units(c, units, blocks[i] & 1)) {
                done += 1;
                continue;
            }
        }
        left[i] = 1;
        given_up += 1;
    }
}
