// The instruments of sanitizing: which bytes were ever written, and which accesses to shared
// memory are ordered by barriers (vector clocks), so that a race is seen whenever it is possible,
// not only when it happens.

__device__ void note(Context* c, long long kind, long long pc, long long other_pc, long long thread,
                     long long other_thread, Address address, long long bytes, int access,
                     int other_access) {
    Checks* k = c->checks;
    for (long long i = 0; i < k->found; ++i) {
        Finding* f = k->findings + i;
        if (f->kind == kind && f->pc == pc && f->other_pc == other_pc) {
            f->count += 1;
            return;
        }
    }
    if (k->found == k->capacity) return;
    Finding* f = k->findings + k->found++;
    f->kind = kind; f->pc = pc; f->other_pc = other_pc;
    f->thread = thread; f->other_thread = other_thread; f->block = c->block;
    f->address = address; f->bytes = bytes; f->access = access; f->other_access = other_access;
    f->count = 1;
}

__device__ void note_bad_access(Context* c, long long t, long long pc, Address address, long long n,
                                int access) {
    note(c, FINDING_KIND_BAD_ACCESS, pc, -1, t, -1, address, n, access, 0);
}

// ---- clocks

__device__ unsigned* clock_of(Context* c, long long t) { return c->checks->clock + t * c->threads; }

__device__ bool ordered(Context* c, long long t, Event* earlier) {
    return earlier->thread == t || clock_of(c, t)[earlier->thread] >= earlier->clock;
}

__device__ void join(Context* c, unsigned* into, const unsigned* from) {
    for (long long u = 0; u < c->threads; ++u) into[u] = into[u] < from[u] ? from[u] : into[u];
}

__device__ void assign(Context* c, unsigned* into, const unsigned* from) {
    for (long long u = 0; u < c->threads; ++u) into[u] = from[u];
}

// Everything a thread does from now on comes after what it has published.
__device__ void tick(Context* c, long long t) { clock_of(c, t)[t] += 1; }

__device__ void begin_checks(Context* c) {
    Checks* k = c->checks;
    for (long long t = 0; t < c->threads; ++t)
        if (k->base < clock_of(c, t)[t]) k->base = clock_of(c, t)[t];
    for (long long t = 0; t < c->threads; ++t) {
        for (long long u = 0; u < c->threads; ++u) clock_of(c, t)[u] = (unsigned)k->base;
        clock_of(c, t)[t] += 1;
    }
    for (long long i = 0; i < NAMED_BARRIERS * c->threads; ++i) k->arrival[i] = 0;
    for (long long i = 0; i < RELEASED_ADDRESSES; ++i) k->released_address[i] = -1;
    copy_bytes((char*)k->shared_ready, (const char*)k->shared_fresh, c->shared_bytes);
    for (long long t = 0; t < c->threads; ++t)
        copy_bytes((char*)k->local_ready + t * c->local_bytes, (const char*)k->local_fresh, c->local_bytes);
    for (long long i = 0; i < (c->shared_bytes + k->grain - 1) / k->grain; ++i)
        k->cells[i].in_flight.clock = 0;
}

// ---- acquire and release: who acquires an address knows what those who released it had done

__device__ unsigned* clock_at(Context* c, Address address) {
    Checks* k = c->checks;
    for (long long i = 0; i < RELEASED_ADDRESSES; ++i) {
        unsigned* clock = k->released_clock + i * c->threads;
        if (k->released_address[i] == (long long)address) return clock;
        if (k->released_address[i] != -1) continue;
        k->released_address[i] = address;
        for (long long u = 0; u < c->threads; ++u) clock[u] = 0;
        return clock;
    }
    return k->released_clock;  // more addresses than this keeps apart share one clock
}

__device__ void release(Context* c, long long t, Address address) {
    join(c, clock_at(c, address), clock_of(c, t));
    tick(c, t);
}

__device__ void acquire(Context* c, long long t, Address address) {
    join(c, clock_of(c, t), clock_at(c, address));
}

// ---- accesses

__device__ void conflict(Context* c, long long t, long long pc, Address address, long long n,
                         int access, Event* other) {
    if (other->clock == 0 || ordered(c, t, other)) return;
    if ((access & ACCESS_ATOMIC) && (other->access & ACCESS_ATOMIC)) return;
    if ((access & ACCESS_VOLATILE) && (other->access & ACCESS_VOLATILE)) return;
    note(c, FINDING_KIND_RACE, pc, other->pc, t, other->thread, address, n, access, other->access);
}

__device__ void record(Context* c, Event* e, long long t, long long pc, int access) {
    e->clock = clock_of(c, t)[t];
    e->pc = (int)pc;
    e->thread = (short)t;
    e->access = (short)access;
}

__device__ void check_shared(Context* c, long long t, long long pc, Address address, long long n,
                             int access) {
    Checks* k = c->checks;
    long long first = offset_in_window(address);
    for (long long g = first / k->grain; g <= (first + n - 1) / k->grain; ++g) {
        Cell* cell = k->cells + g;
        Event* reads = k->reads + g * k->warps * 2;
        if (cell->in_flight.clock)
            note(c, FINDING_KIND_IN_FLIGHT, pc, cell->in_flight.pc, t, cell->in_flight.thread, address, n, access,
                 cell->in_flight.access);
        conflict(c, t, pc, address, n, access, &cell->write);
        if (access & ACCESS_WRITE) {
            for (long long i = 0; i < 2 * k->warps; ++i) conflict(c, t, pc, address, n, access, reads + i);
            record(c, &cell->write, t, pc, access);
            if (access & ACCESS_ASYNC) record(c, &cell->in_flight, t, pc, access);
        } else {
            Event* mine = reads + (t / LANES) * 2;
            if (mine[0].thread != t) mine[1] = mine[0];
            record(c, mine, t, pc, access);
        }
    }
}

// Which flags say that the bytes at an address were written; null where none are kept.
__device__ unsigned char* ready_flags(Context* c, long long t, Address address) {
    Checks* k = c->checks;
    long long window = window_of(address), offset = offset_in_window(address);
    if (window == WINDOW_SHARED) return k->shared_ready + offset;
    if (window == WINDOW_LOCAL) return k->local_ready + t * c->local_bytes + offset;
    if (window == WINDOW_MODULE) return k->module_ready ? k->module_ready + offset : 0;
    if (window == WINDOW_C) return k->c_ready + offset;
    return 0;
}

__device__ void check_access(Context* c, long long t, long long pc, Address address, long long n,
                             int access) {
    unsigned char* ready = ready_flags(c, t, address);
    bool reads = !(access & ACCESS_WRITE) || (access & ACCESS_ATOMIC), outside = false, unwritten = false;
    for (long long i = 0; ready && i < n; ++i) {
        outside |= ready[i] == BYTE_OUTSIDE;
        unwritten |= ready[i] == BYTE_UNWRITTEN;
        if (!reads && !(access & ACCESS_ASYNC) && ready[i] == BYTE_UNWRITTEN) ready[i] = BYTE_WRITTEN;
    }
    if (outside) note_bad_access(c, t, pc, address, n, access);
    else if (reads && unwritten) note(c, FINDING_KIND_UNINITIALISED, pc, -1, t, -1, address, n, access, 0);
    if (window_of(address) == WINDOW_SHARED) check_shared(c, t, pc, address, n, access);
    if (access & ACCESS_ACQUIRE) acquire(c, t, address);
    if (access & ACCESS_RELEASE) release(c, t, address);
}

// An asynchronous copy has arrived: from now on it is an ordinary write of thread t.
__device__ void check_arrival(Context* c, long long t, long long pc, Address address, long long n) {
    Checks* k = c->checks;
    if (window_of(address) != WINDOW_SHARED) return;
    long long first = offset_in_window(address);
    for (long long g = first / k->grain; g <= (first + n - 1) / k->grain; ++g) {
        k->cells[g].in_flight.clock = 0;
        record(c, &k->cells[g].write, t, pc, ACCESS_WRITE);
    }
    for (long long i = 0; i < n; ++i)
        if (k->shared_ready[first + i] == BYTE_UNWRITTEN) k->shared_ready[first + i] = BYTE_WRITTEN;
}

// ---- meetings

// A collective that names lanes which are gone, or that a lane runs without being named.
__device__ void check_collective(Context* c, long long w, unsigned here, unsigned alive) {
    Checks* k = c->checks;
    long long first = LANES * w;
    bool orders = false;
    for (int lane = 0; lane < LANES; ++lane) {
        if (!(here >> lane & 1)) continue;
        Thread* thread = c->thread + first + lane;
        orders |= thread->collective == COLLECTIVE_SYNC && thread->argument == 0;
        long long lanes = c->threads - first;
        unsigned exists = lanes >= LANES ? ~0u : (1u << lanes) - 1;
        unsigned gone = thread->mask & exists & ~alive;
        if (thread->mask && (gone || !(thread->mask >> lane & 1)))
            note(c, FINDING_KIND_MISSING_LANES, thread->pc >> 2, -1, first + lane, -1, thread->mask, 0, 0, 0);
    }
    if (!orders) return;  // only bar.warp.sync orders memory
    for (long long u = 0; u < c->threads; ++u) k->joined[u] = 0;
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) join(c, k->joined, clock_of(c, first + lane));
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) {
            assign(c, clock_of(c, first + lane), k->joined);
            tick(c, first + lane);
        }
}

// A barrier opens: everybody there knows what everybody there has done. `left` threads of the
// block are gone for good.
__device__ void check_barrier(Context* c, int barrier, long long left) {
    Checks* k = c->checks;
    assign(c, k->joined, k->arrival + barrier * c->threads);
    for (long long t = 0; t < c->threads; ++t)
        if (c->thread[t].state == STATE_BARRIER && c->thread[t].barrier == barrier)
            join(c, k->joined, clock_of(c, t));
    for (long long t = 0; t < c->threads; ++t) {
        Thread* thread = c->thread + t;
        if (thread->state != STATE_BARRIER || thread->barrier != barrier) continue;
        assign(c, clock_of(c, t), k->joined);
        tick(c, t);
        if (left && !thread->expected)
            note(c, FINDING_KIND_LEFT_BEFORE_BARRIER, thread->pc >> 2, -1, t, -1, left, 0, 0, 0);
        // the lanes of a warp must meet at one instruction, unless it is not `.aligned`
        for (long long u = t / LANES * LANES; thread->aligned && u < t; ++u) {
            Thread* other = c->thread + u;
            bool elsewhere = other->state != STATE_EXITED && (other->state != STATE_BARRIER || other->pc != thread->pc);
            if (elsewhere) note(c, FINDING_KIND_DIVERGENT_BARRIER, thread->pc >> 2, other->pc >> 2, t, u, 0, 0, 0, 0);
        }
    }
    for (long long u = 0; u < c->threads; ++u) k->arrival[barrier * c->threads + u] = 0;
}
