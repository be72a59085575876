// Runs clusters of blocks, most of them of one block: starts threads, resumes them at collectives
// and barriers, and ends them.

extern "C" __device__ void* host_start(void* entry, Context* c, long long t);
extern "C" __device__ void host_resume(void* handle);

// Lets a thread that polls memory continue, half of the time. If all threads yielded whenever one polls, they
// would run in step. That hides a flag or a counter that already has its value before the data is there.
__device__ void run_on(Context* c, long long t) {
    Thread* thread = c->thread + t;
    while (thread->state == STATE_YIELD && !c->fault) {
        c->chance = (c->chance * 1664525 + 1013904223) & 0xffffffff;
        if (c->chance >> 31) return;
        thread->state = STATE_RUNNING;
        host_resume(thread->handle);
    }
}

__device__ void resume(Context* c, long long t) {
    c->thread[t].state = STATE_RUNNING;
    host_resume(c->thread[t].handle);
    run_on(c, t);
}

__device__ int pc_of(Thread* thread) { return thread->pc >> 2; }

// Returns those of the lanes at a collective for which all live lanes in their masks have arrived.
__device__ __noinline__ unsigned complete_lanes(Context* c, long long w, unsigned here, unsigned alive) {
    for (;;) {
        unsigned left = 0;
        for (int lane = 0; lane < LANES; ++lane)
            if (here >> lane & 1 && !(c->thread[LANES * w + lane].mask & alive & ~here)) left |= 1u << lane;
        if (left == here) return here;
        here = left;
    }
}

__device__ bool is_at_warp_barrier(Thread* thread) {
    return thread->state == STATE_COLLECTIVE && thread->collective == COLLECTIVE_SYNC && thread->argument == 0;
}

// Returns the lanes of a warp that meet a lane at a barrier; 0 if one is missing. The lanes of its mask may
// wait at several program points, as in both branches of an `if`.
__device__ __noinline__ unsigned lanes_at_warp_barrier(Context* c, long long w, int lane, unsigned alive) {
    Thread* thread = c->thread + LANES * w;
    unsigned mask = thread[lane].mask, here = 0;
    if (!is_at_warp_barrier(thread + lane)) return 0;
    for (int other = 0; other < LANES; ++other)
        if (alive >> other & 1 && is_at_warp_barrier(thread + other) && thread[other].mask == mask) here |= 1u << other;
    return mask & alive & ~here ? 0 : here;
}

// Release groups of one warp that wait at a collective, the lowest program point first (so that
// diverged lanes reconverge), until every lane waits for something else.
// A group is complete when every live lane in its masks has arrived. Lanes at one program point whose
// masks are disjoint do not wait for each other, as in tiles of 16 lanes.
__device__ __noinline__ void run_collectives(Context* c, long long w) {
    long long first = LANES * w, last = first + LANES < c->threads ? first + LANES : c->threads;
    int passed = -1;
    while (!c->fault) {
        if (c->counts) count_traces(c, w);
        int pc = 0x7fffffff;
        unsigned here = 0, alive = 0, named = 0;
        for (long long t = first; t < last; ++t) {
            unsigned bit = 1u << (t - first);
            Thread* thread = c->thread + t;
            if (thread->state != STATE_EXITED) alive |= bit;
            if (thread->state != STATE_COLLECTIVE || thread->pc <= passed || thread->pc > pc) continue;
            if (thread->pc < pc) pc = thread->pc, here = named = 0;
            here |= bit, named |= thread->mask;
        }
        if (!here) return;
        if (named & alive & ~here) {
            int lane = __ffs(here) - 1;
            here = complete_lanes(c, w, here, alive);
            if (!here) here = lanes_at_warp_barrier(c, w, lane, alive);
        }
        if (!here) {  // a lane is missing: try the next program point
            passed = pc;
            continue;
        }
        passed = -1;
        c->group[w] = here;
        if (c->checks) check_collective(c, w, here, alive);
        execute_collective(c, w, here);
        for (long long t = first; t < last && !c->fault; ++t)
            if (here >> (t - first) & 1) resume(c, t);
    }
}

// The conditions that resume threads in one round.
struct Round {
    unsigned open;     // barriers that are complete
    int alive, moving; // threads that have not exited; threads that can continue
    int leaving;       // barriers and mbarriers whose wait is over
    long long stuck;   // a thread that waits
};

// A thread names how many threads a barrier is for; without a number it is for all. Those that meet at it
// must name the same number.
__device__ void name_count(Context* c, long long t, long long pc, int barrier, long long count, bool is_first) {
    if (!count) count = c->threads;
    if (is_first) c->named[barrier] = (int)count;
    if (c->named[barrier] != count) rt_fault(c, t, CAUSE_BARRIER_COUNT, pc, c->named[barrier], count, 0);
}

__device__ __noinline__ void collect_runnable(Context* c, Round* round) {
    Round r;
    int waiting[NAMED_BARRIERS], expected[NAMED_BARRIERS];
    r.open = 0, r.alive = 0, r.moving = 0, r.leaving = 0, r.stuck = -1;
    for (int i = 0; i < NAMED_BARRIERS; ++i) waiting[i] = 0, expected[i] = 0;
    for (long long t = 0; t < c->threads; ++t) {
        Thread* thread = c->thread + t;
        if (thread->state == STATE_EXITED) continue;
        r.alive += 1;
        if (r.stuck < 0) r.stuck = t;
        if (thread->state == STATE_YIELD) r.moving += 1;
        if ((thread->state == STATE_MBARRIER && phase_is_over(c, t)) ||
            (thread->state == STATE_CLUSTER_BARRIER && leaves_cluster_barrier(c, t)))
            r.moving += 1, r.leaving += 1, thread->state = STATE_YIELD;
        if (thread->state == STATE_BARRIER) {
            int i = thread->barrier;
            name_count(c, t, pc_of(thread), i, thread->expected, waiting[i] + c->arrived[i] == 0);
            waiting[i] += 1, expected[i] = thread->expected;
        }
    }
    for (int i = 0; i < NAMED_BARRIERS; ++i) {
        int needed = expected[i] ? expected[i] : r.alive;
        if (waiting[i] && waiting[i] + c->arrived[i] >= needed) r.open |= 1u << i, r.moving += 1, r.leaving += 1;
    }
    *round = r;
}

// Notes what a thread waits for: an mbarrier and its state, or a barrier with the number of threads
// there, and of those that it needs.
__device__ void note_deadlock(Context* c, const Round* r) {
    Thread* thread = c->thread + r->stuck;
    Address awaited = thread->barrier;
    long long state = thread->state, found = 0, pc = pc_of(thread);
    if (state == STATE_MBARRIER) {
        awaited = thread->argument;
        int access = ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_GPU_SCOPE | ACCESS_MBARRIER | ACCESS_OWN;
        const unsigned long long* word = mbarrier_at(c, r->stuck, pc, awaited, access);
        if (word) found = (long long)*word;
    } else if (state == STATE_BARRIER) {
        found = c->arrived[thread->barrier];
        for (long long t = 0; t < c->threads; ++t)
            found += c->thread[t].state == STATE_BARRIER && c->thread[t].barrier == thread->barrier;
        found |= (long long)(thread->expected ? thread->expected : r->alive) << 32;
    }
    rt_fault(c, r->stuck, CAUSE_DEADLOCK, pc, awaited, found, state);
}

// bar.red: the reduction of the predicates of all threads at a barrier.
__device__ void reduce_barrier(Context* c, int barrier) {
    int count = 0, all = 1, any = 0;
    for (int step = 0; step < 2; ++step)
        for (long long t = 0; t < c->threads; ++t) {
            Thread* thread = c->thread + t;
            if (thread->state != STATE_BARRIER || thread->barrier != barrier || thread->collective < 0) continue;
            if (step == 0) count += thread->parity, all &= thread->parity, any |= thread->parity;
            else thread->parity = thread->collective == 0 ? count : thread->collective == 1 ? all : any;
        }
}

__device__ void begin_block(Context* c) {
    for (int i = 0; i < NAMED_BARRIERS; ++i) c->arrived[i] = 0;
    long long *shared = (long long*)c->shared, *end = shared + (c->shared_bytes + 7) / 8;
    for (long long* word = shared; word < end; word += 8)
#pragma unroll
        for (int i = 0; i < 8; ++i) word[i] = -1;  // NaN
    c->bulk_count = c->trackers_used = c->unit_lanes = 0;
    c->is_over = c->cluster_phases = c->phases_seen = 0;
    c->chance = c->block;  // for the same report each time
}

// Returns whether all threads of the block have exited; then no thread may access its shared memory.
__device__ void note_whether_over(Context* c) {
    c->is_over = 1;
    for (long long t = 0; t < c->threads; ++t) c->is_over &= c->thread[t].state == STATE_EXITED;
}

// Whether all threads of t's warp have run in this round.
__device__ bool ends_warp(Context* c, long long t, bool backward) {
    return backward ? t % LANES == 0 : t % LANES == LANES - 1 || t == c->threads - 1;
}

__device__ void start_threads(Context* c, bool backward) {
    long long n = c->threads;
    for (long long t = 0; t < n; ++t) c->thread[t].state = STATE_RUNNING;
    for (long long i = 0; i < n && !c->fault; ++i) {
        long long t = backward ? n - 1 - i : i;
        Thread* thread = c->thread + t;
        thread->group = thread->copies = thread->delivered = thread->bulk_group = thread->products = thread->issued = 0;
        thread->cluster_arrivals = thread->cluster_waits = thread->arrival_pc = 0;
        thread->met = 1 << c->rank;
        thread->lane_buffer = lane_words(c, t / LANES, 0) + t % LANES;
        thread->handle = host_start(c->entry, c, t);
        run_on(c, t);
        if (ends_warp(c, t, backward)) run_collectives(c, t / LANES);
    }
    note_whether_over(c);
}

__device__ void open_barriers(Context* c, Round* r) {
    for (int i = 0; i < NAMED_BARRIERS; ++i)
        if (r->open >> i & 1) {
            c->arrived[i] = 0;
            reduce_barrier(c, i);
            if (c->checks) check_barrier(c, i, c->threads - r->alive);
        }
}

__device__ void resume_threads(Context* c, Round* r, bool backward) {
    long long n = c->threads;
    bool any_woke = false;  // of this warp
    for (long long i = 0; i < n && !c->fault; ++i) {
        long long t = backward ? n - 1 - i : i;
        Thread* thread = c->thread + t;
        bool wakes = thread->state == STATE_YIELD ||
                     (thread->state == STATE_BARRIER && r->open >> thread->barrier & 1);
        if (wakes) resume(c, t);
        any_woke |= wakes;
        if (!ends_warp(c, t, backward)) continue;
        if (any_woke) run_collectives(c, t / LANES);
        any_woke = false;
    }
    note_whether_over(c);
}

// Assigns the blocks of a cluster to the contexts, by rank.
__device__ void place_cluster(Context* c, long long number) {
    long long across = c->grid_x / c->cluster_x, down = c->grid_y / c->cluster_y;
    for (long long rank = 0; rank < c->cluster_blocks; ++rank) {
        Context* block = c + rank;
        block->x = number % across * c->cluster_x + rank % c->cluster_x;
        block->y = number / across % down * c->cluster_y + rank / c->cluster_x % c->cluster_y;
        block->z = number / across / down * c->cluster_z + rank / c->cluster_x / c->cluster_y;
        block->block = block->x + c->grid_x * (block->y + c->grid_y * block->z);
    }
}

__device__ bool has_fault(Context* c) {
    for (long long b = 0; b < c->cluster_blocks; ++b)
        if (c[b].fault) return true;
    return false;
}

// Begins the blocks of a cluster: their threads take turns, like those of one block. c: of rank 0
__device__ __noinline__ void begin_cluster(Context* c, long long number) {
    place_cluster(c, number);
    c->is_running = 1;
    // Every other round goes backward, so that no order of the threads hides a missing barrier.
    // So does the first round of every other cluster, for kernels that have no barrier.
    c->backward = number & 1;
    for (long long b = 0; b < c->cluster_blocks; ++b) begin_block(c + b);
    if (c->checks) begin_checks(c);
    for (long long b = 0; b < c->cluster_blocks && !has_fault(c); ++b) start_threads(c + b, c->backward);
}

// Runs a cluster until it ends, has a fault, or has run this many rounds in which its threads only polled.
// c: of rank 0
__device__ __noinline__ void run_rounds(Context* c, long long polls) {
    long long blocks = c->cluster_blocks;
    Round rounds[MAX_CLUSTER];
    int alive = 0;
    for (long long polled = 0; polled < polls && !has_fault(c); ++polled) {
        c->backward = !c->backward;
        int before = alive, moving = 0, leaving = 0;
        alive = 0;
        Context* stuck = 0;
        advance_cluster_barrier(c);
        for (long long b = 0; b < blocks; ++b) {
            collect_runnable(c + b, rounds + b);
            alive += rounds[b].alive, moving += rounds[b].moving, leaving += rounds[b].leaving;
            if (!stuck && rounds[b].alive) stuck = c + b;
            if (c[b].fault) return;
        }
        if (alive == 0) {
            c->is_running = 0;
            return;
        }
        if (*c->stop || !moving) {
            const Round* round = rounds + stuck->rank;
            if (*c->stop) rt_fault(stuck, round->stuck, CAUSE_TIME_LIMIT, pc_of(stuck->thread + round->stuck), 0, 0, 0);
            else note_deadlock(stuck, round);
            stuck->fault_count = alive;
            return;
        }
        if (leaving || alive != before) polled = 0;
        for (long long b = 0; b < blocks; ++b) open_barriers(c + b, rounds + b);
        for (long long i = 0; i < blocks && !has_fault(c); ++i) {
            long long b = c->backward ? blocks - 1 - i : i;
            resume_threads(c + b, rounds + b, c->backward);
        }
    }
}

// c: of rank 0
__device__ void end_cluster(Context* c) {
    for (long long b = 0; b < c->cluster_blocks; ++b) {
        compare_diverted_write(c + b);
        if (c->checks) check_warpgroups(c + b);
    }
    if (c->checks && c->cluster_blocks > 1) check_visits(c);
}

// Returns whether another cluster may run before this one ends. c: of rank 0
__device__ bool can_wait(Context* c) {
    if (c->checks && c->checks->history->switches == MAX_SWITCHES) return false;
    return !c->counts || !has_traces(c);
}

// Runs clusters in one slot until one polls for so many rounds or has a fault, or the list is empty.
// c: of rank 0
__device__ void run_slot(Context* c, long long polls, unsigned long long* next, const long long* clusters, long long count) {
    for (;;) {
        if (c->is_running) {
            if (c->checks) continue_clocks(c);
        } else {
            unsigned long long i = atomicAdd(next, 1ull);
            if (i >= count) return;
            begin_cluster(c, clusters[i]);
        }
        do run_rounds(c, polls);
        while (c->is_running && !has_fault(c) && !can_wait(c));
        if (!has_fault(c) && !c->is_running) end_cluster(c);
        if (c->checks) end_run(c);
        if (c->is_running || has_fault(c)) return;
    }
}

// Takes clusters from the list until one has a fault. If the threads of a cluster have only polled for so many
// rounds, it keeps its slot, and the other slots run. slot: the contexts of each, of rank 0. Returns whether all
// slots poll, and the caller may provide more of them for the rest of the list (may_grow), or a longer list
// (is_trial).
extern "C" __device__ long long rt_run(Context** slot, long long slots, long long polls, long long may_grow,
                                       long long is_trial, unsigned long long* next, const long long* clusters,
                                       long long count) {
    long long first = 0;
    while (first < slots - 1 && slot[first]->is_running) ++first;
    for (;; first = 0) {
        long long running = 0;
        for (long long s = first; s < slots; ++s) {
            run_slot(slot[s], slots > 1 || may_grow || is_trial ? polls : 1ll << 62, next, clusters, count);
            if (has_fault(slot[s])) {
                atomicAdd(next, 1ull << 40);  // hand out no further clusters
                return 0;
            }
        }
        for (long long s = 0; s < slots; ++s) running += slot[s]->is_running;
        if (!running) return 0;
        bool has_more = *(volatile unsigned long long*)next < count;
        if (running == slots && (is_trial || (may_grow && has_more))) return 1;
    }
}

// bar.arrive: counted at the barrier, without waiting.
extern "C" __device__ long long rt_arrive(Context* c, long long t, long long pc, long long barrier, long long count) {
    name_count(c, t, pc, (int)barrier, count, c->arrived[barrier] == 0);
    c->arrived[barrier] += 1;
    if (c->checks) {
        join(c, arrival_at(c, barrier), clock_of(c, t));
        tick(c, t);
    }
    return !c->fault;
}

extern "C" __device__ void host_print(void* function, Context* c, long long t, char* format,
                                      Address arguments);

extern "C" __device__ void rt_print(Context* c, long long t, long long pc, Address format,
                                    Address arguments) {
    host_print(c->print, c, t, (char*)format, arguments);
}
