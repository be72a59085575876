// The instruments of sanitizing: which bytes were ever written, and which accesses to shared
// memory are ordered by barriers (vector clocks), so that a race is seen whenever it is possible,
// not only when it happens.

// other_thread: counted through the cluster; -1 where there is none.
__device__ void note(Context* c, long long kind, long long pc, long long other_pc, long long thread,
                     long long other_thread, Address address, long long bytes, int access,
                     int other_access) {
    Context* other_block = c->cluster + (other_thread < 0 ? c->rank : other_thread / c->threads);
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
    f->thread = thread; f->other_thread = other_thread < 0 ? -1 : other_thread % c->threads;
    f->block = c->block; f->other_block = other_block->block;
    f->address = address; f->bytes = bytes; f->access = access; f->other_access = other_access;
    f->count = 1;
}

__device__ void note_bad_access(Context* c, long long t, long long pc, Address address, long long n,
                                int access) {
    note(c, FINDING_KIND_BAD_ACCESS, pc, -1, t, -1, address, n, access, 0);
}

// ---- clocks: what every thread of the cluster knows of every other

// Of a thread, counted through the cluster.
__device__ long long number_of(Context* c, long long t) { return c->rank * c->threads + t; }

__device__ long long threads_of_cluster(Context* c) { return c->cluster_blocks * c->threads; }

__device__ unsigned* clock_of(Context* c, long long t) {
    return c->checks->clock + number_of(c, t) * threads_of_cluster(c);
}

__device__ bool ordered(Context* c, long long t, Event* earlier) {
    return earlier->thread == number_of(c, t) || clock_of(c, t)[earlier->thread] >= earlier->clock;
}

__device__ void join(Context* c, unsigned* into, const unsigned* from) {
    long long n = threads_of_cluster(c);
    for (long long u = 0; u < n; ++u) into[u] = into[u] < from[u] ? from[u] : into[u];
}

__device__ void assign(Context* c, unsigned* into, const unsigned* from) {
    long long n = threads_of_cluster(c);
    for (long long u = 0; u < n; ++u) into[u] = from[u];
}

__device__ void forget(Context* c, unsigned* clock) {
    long long n = threads_of_cluster(c);
    for (long long u = 0; u < n; ++u) clock[u] = 0;
}

// What the products of a warp's later groups, or of one not yet committed, read.
__device__ bool may_still_read(const Event* e) { return (e->access & (ACCESS_ASYNC | ACCESS_WRITE)) == ACCESS_ASYNC; }

// Everything a thread does from now on comes after what it has published.
__device__ void tick(Context* c, long long t) { clock_of(c, t)[number_of(c, t)] += 1; }

__device__ long long grains(Context* c) { return (c->shared_bytes + c->checks->grain - 1) / c->checks->grain; }

// By grain of the block's shared memory.
__device__ Cell* cells_of(Context* block) { return block->checks->cells + block->rank * grains(block); }

__device__ unsigned char* local_ready(Context* c, long long t) {
    return c->checks->local_ready + number_of(c, t) * c->local_bytes;
}

// c: of rank 0
__device__ void begin_checks(Context* c) {
    Checks* k = c->checks;
    long long n = threads_of_cluster(c);
    for (long long b = 0; b < c->cluster_blocks; ++b)
        for (long long w = 0; w < k->warps / c->cluster_blocks; ++w) check_products(c + b, w, 0xffffffff);
    for (long long t = 0; t < n; ++t)
        if (k->base < k->clock[t * n + t]) k->base = k->clock[t * n + t];
    for (long long t = 0; t < n; ++t) {
        for (long long u = 0; u < n; ++u) k->clock[t * n + u] = (unsigned)k->base;
        k->clock[t * n + t] += 1;
        copy_bytes((char*)local_ready(c, t), (const char*)k->local_fresh, c->local_bytes);
    }
    for (long long i = 0; i < NAMED_BARRIERS * c->cluster_blocks * n; ++i) k->arrival[i] = 0;
    for (long long i = 0; i < RELEASED_ADDRESSES * c->cluster_blocks; ++i) k->released_address[i] = -1;
    for (long long b = 0; b < c->cluster_blocks; ++b)
        copy_bytes((char*)k->shared_ready + b * c->shared_bytes, (const char*)k->shared_fresh, c->shared_bytes);
    for (long long i = 0; i < c->cluster_blocks * grains(c); ++i) k->cells[i].in_flight.clock = 0;
    if (c->cluster_blocks > 1) begin_cluster_checks(c);
}

// ---- acquire and release: who acquires an address knows what those who released it had done

__device__ unsigned* clock_at(Context* c, Address address) {
    Checks* k = c->checks;
    for (long long i = 0; i < RELEASED_ADDRESSES * c->cluster_blocks; ++i) {
        unsigned* clock = k->released_clock + i * threads_of_cluster(c);
        if (k->released_address[i] == (long long)address) return clock;
        if (k->released_address[i] != -1) continue;
        k->released_address[i] = address;
        forget(c, clock);
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
    if (other->clock == 0 || (!may_still_read(other) && ordered(c, t, other))) return;
    if ((access & ACCESS_ATOMIC) && (other->access & ACCESS_ATOMIC)) return;
    if ((access & ACCESS_VOLATILE) && (other->access & ACCESS_VOLATILE)) return;
    if ((other->access & ACCESS_INIT) && init_is_known(c, t, other)) return;
    note(c, FINDING_KIND_RACE, pc, other->pc, t, other->thread, address, n, access, other->access);
}

__device__ void record(Context* c, Event* e, long long t, long long pc, int access) {
    e->clock = clock_of(c, t)[number_of(c, t)];
    e->pc = (int)pc;
    e->thread = (short)number_of(c, t);
    e->access = (short)access;
}

// ---- products in flight: until their group was waited for, what wgmma reads has the number of the
// group for its clock, and no order ends it

__device__ long long warp_of_cluster(Context* c, long long w) { return c->rank * (c->checks->warps / c->cluster_blocks) + w; }

// By grain of the block's shared memory, warp and lane.
__device__ Event* reads_of(Context* block) {
    return block->checks->reads + block->rank * grains(block) * block->checks->warps * 2;
}

__device__ int* awaited_by(Context* c, long long warp) { return c->checks->awaited + warp * grains(c); }

// A grain that the warp's products are about to read. mine: what is recorded of the warp there.
__device__ void await_products(Context* c, Event* mine, long long warp, long long g) {
    if (!may_still_read(mine) && !may_still_read(mine + 1))
        awaited_by(c, warp)[c->checks->awaited_grains[warp]++] = (int)g;
}

// All groups up to this one are over: from now on their reads are ordinary ones.
__device__ void check_products(Context* c, long long w, long long waited_for) {
    Checks* k = c->checks;
    long long warp = warp_of_cluster(c, w), left = 0;
    int* awaited = awaited_by(c, warp);
    for (long long i = 0; i < k->awaited_grains[warp]; ++i) {
        Event* mine = reads_of(c) + ((long long)awaited[i] * k->warps + warp) * 2;
        for (Event* e = mine; e < mine + 2; ++e) {
            if (!may_still_read(e) || e->clock > waited_for) continue;
            e->access &= ~ACCESS_ASYNC;
            e->clock = k->clock[e->thread * threads_of_cluster(c) + e->thread];
        }
        if (may_still_read(mine) || may_still_read(mine + 1)) awaited[left++] = awaited[i];
    }
    k->awaited_grains[warp] = (int)left;
}

// At the end of a block: all four warps of a warpgroup have issued as many products.
__device__ void check_warpgroups(Context* c) {
    const long long WARPGROUP = 4 * LANES;
    for (long long t = 0; t < c->threads; t += LANES) {
        long long first = t / WARPGROUP * WARPGROUP, most = c->thread[t].issued;
        for (long long u = first; u < first + WARPGROUP; u += LANES)
            if ((u < c->threads ? c->thread[u].issued : 0) < most) {
                note(c, FINDING_KIND_MISSING_WARPS, c->thread[t].issued_pc, -1, t, -1, 0, 0, 0, 0);
                break;
            }
    }
}

__device__ void check_shared(Context* c, long long t, long long pc, Context* block, Address address,
                             long long n, int access) {
    Checks* k = c->checks;
    long long first = offset_in_block(address), number = number_of(c, t);
    long long warp = warp_of_cluster(c, t / LANES);
    Cell* cells = cells_of(block);
    Event* every_read = reads_of(block);
    for (long long g = first / k->grain; g <= (first + n - 1) / k->grain; ++g) {
        Cell* cell = cells + g;
        Event* reads = every_read + g * k->warps * 2;
        if (cell->in_flight.clock)
            note(c, FINDING_KIND_IN_FLIGHT, pc, cell->in_flight.pc, t, cell->in_flight.thread, address, n, access,
                 cell->in_flight.access);
        conflict(c, t, pc, address, n, access, &cell->write);
        conflict(c, t, pc, address, n, access, &cell->atomic);
        if (access & ACCESS_WRITE) {
            for (long long i = 0; i < 2 * k->warps; ++i) conflict(c, t, pc, address, n, access, reads + i);
            // A plain write stays: atomics of the same thread behind it do not hide it from others.
            bool plain = !(access & (ACCESS_ATOMIC | ACCESS_VOLATILE));
            record(c, plain ? &cell->write : &cell->atomic, t, pc, access);
            if (access & ACCESS_ASYNC) record(c, &cell->in_flight, t, pc, access);
        } else {
            Event* mine = reads + warp * 2;
            if (access & ACCESS_ASYNC) await_products(c, mine, warp, g);
            if (mine[0].thread != number) mine[1] = mine[0];
            record(c, mine, t, pc, access);
            if (access & ACCESS_ASYNC) mine->clock = c->thread[t / LANES * LANES].products + 1;
        }
    }
}

// Which flags say that the bytes at an address were written; null where none are kept.
__device__ unsigned char* ready_flags(Context* c, long long t, Address address) {
    Checks* k = c->checks;
    long long window = window_of(address), offset = offset_in_window(address);
    if (window == WINDOW_SHARED)
        return k->shared_ready + block_at(c, address)->rank * c->shared_bytes + offset_in_block(address);
    if (window == WINDOW_LOCAL) return local_ready(c, t) + offset;
    if (window == WINDOW_MODULE) return k->module_ready ? k->module_ready + offset : 0;
    if (window < WINDOW_BUFFER || !k->buffer_ready[window]) return 0;
    return k->buffer_ready[window] + offset;
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
    if (window_of(address) == WINDOW_SHARED) {
        Context* block = block_at(c, address);
        check_shared(c, t, pc, block, address, n, access);
        if (block != c) check_visit(c, t, pc, address, n, access);
    }
    if (access & ACCESS_ACQUIRE) acquire(c, t, address);
    if (access & ACCESS_RELEASE) release(c, t, address);
}

// An asynchronous copy has arrived: from now on it is an ordinary write of thread t.
__device__ void check_arrival(Context* c, long long t, long long pc, Address address, long long n) {
    Checks* k = c->checks;
    Context* block = block_at(c, address);
    if (!block) return;
    long long first = offset_in_block(address);
    for (long long g = first / k->grain; g <= (first + n - 1) / k->grain; ++g) {
        cells_of(block)[g].in_flight.clock = 0;
        record(c, &cells_of(block)[g].write, t, pc, ACCESS_WRITE);
    }
    unsigned char* ready = ready_flags(c, t, address);
    for (long long i = 0; i < n; ++i)
        if (ready[i] == BYTE_UNWRITTEN) ready[i] = BYTE_WRITTEN;
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
        orders |= thread->collective == COLLECTIVE_WGMMA_WAIT;
        long long lanes = c->threads - first;
        unsigned exists = lanes >= LANES ? ~0u : (1u << lanes) - 1;
        unsigned gone = thread->mask & exists & ~alive;
        if (thread->mask && (gone || !(thread->mask >> lane & 1)))
            note(c, FINDING_KIND_MISSING_LANES, thread->pc >> 2, -1, first + lane, -1, thread->mask, 0, 0, 0);
    }
    if (!orders) return;  // only bar.warp.sync orders memory, and the wait for what all have issued
    forget(c, k->joined);
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) join(c, k->joined, clock_of(c, first + lane));
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) {
            assign(c, clock_of(c, first + lane), k->joined);
            tick(c, first + lane);
        }
}

// What those knew who arrived at a barrier of the block without waiting.
__device__ unsigned* arrival_at(Context* c, long long barrier) {
    return c->checks->arrival + (c->rank * NAMED_BARRIERS + barrier) * threads_of_cluster(c);
}

// A barrier opens: everybody there knows what everybody there has done. `left` threads of the
// block are gone for good.
__device__ void check_barrier(Context* c, int barrier, long long left) {
    Checks* k = c->checks;
    unsigned* arrival = arrival_at(c, barrier);
    assign(c, k->joined, arrival);
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
            if (elsewhere) note(c, FINDING_KIND_DIVERGENT_BARRIER, thread->pc >> 2, other->pc >> 2, t, number_of(c, u), 0, 0, 0, 0);
        }
    }
    forget(c, arrival);
}
