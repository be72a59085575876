// The barrier of a cluster's blocks, and accesses to each other's shared memory, which must happen
// between the beginning and the end of the block accessed.

// ---- the barrier: every thread arrives once in a phase, and waits before it arrives again

// how: bit 0 for `.aligned`, bit 1 for `.relaxed`
extern "C" __device__ long long rt_cluster_arrive(Context* c, long long t, long long pc, long long how) {
    Thread* thread = c->thread + t;
    if (thread->cluster_arrivals != thread->cluster_waits) {
        rt_fault(c, t, CAUSE_CLUSTER_ORDER, pc, 0, 0, 0);
        return 0;
    }
    thread->cluster_arrivals += 1;
    thread->arrival_pc = (int)pc << 1 | (int)(how & 1);
    Checks* k = c->checks;
    if (!k || c->cluster_blocks == 1) return 1;
    long long n = number_of(c, t);
    k->arrived[n] = *own_clock(c, t);
    k->init_arrived[n] = k->init_fenced[n];
    bool fenced = k->fenced_far[n] >> SAME_CLUSTER & 1;
    if (!(how & 2)) join(c, k->cluster_arrival, clock_of(c, t));
    else if (fenced) join(c, k->cluster_arrival, fence_of(c, 0, SAME_CLUSTER, t));
    tick(c, t);
    return 1;
}

// Returns whether this thread may wait, which it may after its arrival.
extern "C" __device__ long long rt_cluster_wait(Context* c, long long t, long long pc) {
    Thread* thread = c->thread + t;
    if (thread->cluster_arrivals != thread->cluster_waits) return 1;
    rt_fault(c, t, CAUSE_CLUSTER_ORDER, pc, 0, 0, 0);
    return 0;
}

// The lanes of a warp must arrive at one instruction, unless it is not `.aligned`.
__device__ void check_alignment(Context* c) {
    for (long long t = 0; t < c->threads; ++t) {
        Thread* thread = c->thread + t;
        if (thread->state == STATE_EXITED || !(thread->arrival_pc & 1)) continue;
        for (long long u = t / LANES * LANES; u < t; ++u) {
            Thread* other = c->thread + u;
            if (other->state != STATE_EXITED && other->arrival_pc != thread->arrival_pc)
                note(c, FINDING_KIND_DIVERGENT_BARRIER, thread->arrival_pc >> 1, other->arrival_pc >> 1, t,
                     number_of(c, u), 0, 0, 0, 0);
        }
    }
}

// A phase ends when all threads of the cluster that have not exited have arrived. c: of rank 0
__device__ __noinline__ void advance_cluster_barrier(Context* c) {
    bool waits = false;
    for (long long b = 0; b < c->cluster_blocks; ++b)
        for (long long t = 0; t < c->threads; ++t) {
            Thread* thread = c[b].thread + t;
            if (thread->state == STATE_EXITED) continue;
            if (thread->cluster_arrivals <= c->cluster_phases) return;
            waits = true;
        }
    if (!waits) return;
    c->cluster_phases += 1;
    Checks* k = c->checks;
    if (!k || c->cluster_blocks == 1) return;
    assign(c, k->cluster_known, k->cluster_arrival);
    assign(c, k->finished, k->arrived);
    assign(c, k->init_known, k->init_arrived);
    for (long long b = 0; b < c->cluster_blocks; ++b) check_alignment(c + b);
}

// Whether a thread that waits at the barrier can continue; then its wait is complete.
__device__ __noinline__ bool leaves_cluster_barrier(Context* c, long long t) {
    Thread* thread = c->thread + t;
    if (thread->cluster_arrivals > c->cluster->cluster_phases) return false;
    thread->cluster_waits += 1;
    thread->met = (1 << c->cluster_blocks) - 1;
    Checks* k = c->checks;
    if (!k || c->cluster_blocks == 1) return true;
    join(c, clock_of(c, t), k->cluster_known);
    if (c->phases_seen != c->cluster->cluster_phases)
        assign(c, k->seen + c->rank * clock_words(c), k->finished);
    c->phases_seen = c->cluster->cluster_phases;
    return true;
}

// fence.mbarrier_init: an arrival that is `.relaxed` tells of mbarriers that were initialised
// before it.
extern "C" __device__ void rt_fence_init(Context* c, long long t) {
    if (!c->checks || c->cluster_blocks == 1) return;
    long long n = number_of(c, t);
    c->checks->init_fenced[n] = *own_clock(c, t);
    tick(c, t);
}

// Returns whether an mbarrier was initialised and fenced before a phase that thread t has waited for.
__device__ bool init_is_known(Context* c, long long t, Event* init) {
    return c->cluster_blocks > 1 && c->thread[t].cluster_waits &&
           init->clock <= c->checks->init_known[init->thread];
}

// ---- accesses to another block's shared memory

__device__ Event* visit(Context* block, long long number) {
    return block->checks->visits + block->rank * threads_of_cluster(block) + number;
}

__device__ bool knows_to_have_begun(Context* c, long long t, Context* block) {
    for (long long u = 0; u < c->threads; ++u)
        if (known_to(c, t)[number_of(block, u)] > c->checks->base) return true;
    return false;
}

// Thread t accesses another block's shared memory.
__device__ void check_visit(Context* c, long long t, long long pc, Address address, long long n, int access) {
    Thread* thread = c->thread + t;
    Context* block = block_at(c, address);
    record(c, visit(block, number_of(c, t)), t, pc, access);
    if (thread->met >> block->rank & 1) return;
    if (knows_to_have_begun(c, t, block)) thread->met |= 1 << block->rank;
    else note(c, FINDING_KIND_BLOCK_NOT_BEGUN, pc, -1, t, -1, address, n, access, 0);
}

// Whether an access from another block is ordered before some thread of the block exited.
__device__ bool visit_is_known(Context* block, long long number, unsigned clock) {
    if (block->checks->seen[block->rank * clock_words(block) + number] >= clock) return true;
    for (long long t = 0; t < block->threads; ++t)
        if (known_to(block, t)[number] >= clock) return true;
    return false;
}

// At the end, reports accesses and copies in flight for which the accessed block did not wait.
// c: of rank 0
__device__ __noinline__ void check_visits(Context* c) {
    for (long long b = 0; b < c->cluster_blocks; ++b) {
        for (long long u = 0; u < threads_of_cluster(c); ++u) {
            Event* last = visit(c + b, u);
            if (last->clock && !visit_is_known(c + b, u, last->clock))
                note(c + u / c->threads, FINDING_KIND_BLOCK_MAY_BE_OVER, last->pc, -1, u % c->threads, -1,
                     shared_begin(c + b), 0, last->access, 0);
        }
        check_copies(c + b);
    }
}

__device__ void begin_cluster_checks(Context* c) {
    Checks* k = c->checks;
    unsigned* clocks[] = {k->cluster_arrival, k->cluster_known, k->arrived, k->finished,
                          k->init_fenced, k->init_arrived, k->init_known};
    for (unsigned* clock : clocks) forget(c, clock);
    for (long long b = 0; b < c->cluster_blocks; ++b) {
        forget(c, k->seen + b * clock_words(c));
        for (long long u = 0; u < threads_of_cluster(c); ++u) visit(c + b, u)->clock = 0;
    }
}
