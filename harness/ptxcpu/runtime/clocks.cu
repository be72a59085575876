// The order of accesses by PTX's memory model, computed with vector clocks.
//
// A clock has one number for each thread of the cluster, followed by the number of a set of
// snapshots for clusters that ran before. If the kernel reads shared memory by the asynchronous
// proxy, the numbers of all threads follow once more, as of the last proxy fence. A release, or a
// fence followed by a strong write, stores the writer's clock at the address that it writes; an
// acquire, or a strong read followed by a fence, joins it. This holds only for threads that both
// scopes include. A fence also has effect through a barrier: after the barrier another thread may
// publish accesses that were fenced before it. The formal model does not say so, but every GPU does
// it, and many programs need it.

// The distance of two threads, and the distance that a scope includes.
enum { SAME_BLOCK = 0, SAME_CLUSTER = 1, OTHER_CLUSTER = 2, DISTANCES = 3 };
enum { EMPTY_SET = 0, EVERYTHING = 1 };
enum { ACQUIRES = 1, RELEASES = 2 };

// Returns a thread's number, counted through the cluster.
__device__ __noinline__ long long number_of(Context* c, long long t) { return c->rank * c->threads + t; }

__device__ __noinline__ long long threads_of_cluster(Context* c) { return c->cluster_blocks * c->threads; }

// Returns the number of words of a clock.
__device__ __noinline__ long long clock_words(Context* c) { return c->checks->clock_words; }

// Returns where a clock has the numbers as of the last proxy fence.
__device__ long long fenced_numbers(Context* c) { return threads_of_cluster(c) + 1; }

__device__ unsigned* row_of(Context* c, long long t) {
    return c->checks->clock + number_of(c, t) * clock_words(c);
}

// Threads that met at a barrier of the block have the same clock afterwards, except for their own
// numbers. It is kept once, until one of them needs a clock of its own.
__device__ unsigned* common_of(Context* c) { return c->checks->common + c->rank * clock_words(c); }

// What all threads of the block know.
__device__ unsigned* floor_of(Context* c) { return c->checks->floor + c->rank * clock_words(c); }

__device__ __noinline__ void assign(Context* c, unsigned* into, const unsigned* from) {
    for (long long i = 0; i < clock_words(c); i += CLOCK_STEP) {
        unsigned x[CLOCK_STEP];
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) x[j] = from[i + j];
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) into[i + j] = x[j];
    }
}

// The clock of thread t, which the caller may change.
__device__ __noinline__ unsigned* clock_of(Context* c, long long t) {
    long long n = number_of(c, t);
    unsigned* row = row_of(c, t);
    if (c->checks->has_common[n]) {
        c->checks->has_common[n] = 0;
        c->checks->in_step &= ~(1ll << c->rank);
        assign(c, row, common_of(c));
    }
    row[n] = c->checks->own[n];
    return row;
}

// Returns the clock of thread t for reading; its own number may be missing.
__device__ __noinline__ const unsigned* known_to(Context* c, long long t) {
    return c->checks->has_common[number_of(c, t)] ? common_of(c) : row_of(c, t);
}

__device__ __noinline__ unsigned* own_clock(Context* c, long long t) { return c->checks->own + number_of(c, t); }

// FENCED: the clock of a thread at its last fence whose scope includes a distance. PENDING: the clocks
// that it has read with strong reads at that distance, and joins at its next fence.
enum { FENCED = 0, PENDING = 1 };

// Bit d says whether the thread has such a clock for distance d.
__device__ int* levels_of(Context* c, int which, long long t) {
    return (which == PENDING ? c->checks->pending_from : c->checks->fenced_far) + number_of(c, t);
}

__device__ __noinline__ unsigned* fence_of(Context* c, int which, int distance, long long t) {
    unsigned* all = which == PENDING ? c->checks->pending : c->checks->fenced;
    return all + (distance * threads_of_cluster(c) + number_of(c, t)) * clock_words(c);
}

__device__ int reach_of(int access) {
    return access & ACCESS_GPU_SCOPE ? OTHER_CLUSTER : access & ACCESS_CLUSTER_SCOPE ? SAME_CLUSTER : SAME_BLOCK;
}

// ---- sets of snapshots

__device__ unsigned long long* set_at(Context* c, unsigned set) {
    return c->checks->history->sets + (long long)set * (MAX_SNAPSHOTS / 64);
}

// Returns an empty set, or 0 if there is no room for more.
__device__ unsigned new_set(Context* c) {
    History* h = c->checks->history;
    return h->sets_used == MAX_SETS ? 0 : (unsigned)h->sets_used++;
}

__device__ __noinline__ unsigned join_sets(Context* c, unsigned a, unsigned b) {
    History* h = c->checks->history;
    if (a == b || b == EMPTY_SET) return a;
    if (a == EMPTY_SET) return b;
    if (a == EVERYTHING || b == EVERYTHING) return EVERYTHING;
    if (h->joined_a == a && h->joined_b == b) return (unsigned)h->joined_set;
    bool a_is_all = true, b_is_all = true;
    for (int i = 0; i < MAX_SNAPSHOTS / 64; ++i) {
        unsigned long long both = set_at(c, a)[i] | set_at(c, b)[i];
        a_is_all &= both == set_at(c, a)[i];
        b_is_all &= both == set_at(c, b)[i];
    }
    if (a_is_all) return a;
    if (b_is_all) return b;
    unsigned set = new_set(c);
    if (!set) return EVERYTHING;
    for (int i = 0; i < MAX_SNAPSHOTS / 64; ++i) set_at(c, set)[i] = set_at(c, a)[i] | set_at(c, b)[i];
    h->joined_a = a, h->joined_b = b, h->joined_set = set;
    return set;
}

// A set of snapshots with the contents of a clock, for threads of clusters that run later.
__device__ unsigned snapshot(Context* c, const unsigned* clock) {
    History* h = c->checks->history;
    long long n = threads_of_cluster(c), number = h->snapshots_used;
    if (number == MAX_SNAPSHOTS || clock[n] == EVERYTHING) return EVERYTHING;
    unsigned set = new_set(c);
    if (!set) return EVERYTHING;
    h->snapshots_used += 1;
    unsigned least = clock[0], greatest = clock[0];
    for (long long u = 0; u < n; ++u) {
        h->snapshots[number * n + u] = clock[u];
        least = clock[u] < least ? clock[u] : least;
        greatest = clock[u] > greatest ? clock[u] : greatest;
    }
    h->snapshot_bounds[2 * number] = least;
    h->snapshot_bounds[2 * number + 1] = greatest;
    for (int i = 0; i < MAX_SNAPSHOTS / 64; ++i) set_at(c, set)[i] = clock[n] ? set_at(c, clock[n])[i] : 0;
    set_at(c, set)[number / 64] |= 1ull << (number % 64);
    return set;
}

// ---- clocks

__device__ __noinline__ void join(Context* c, unsigned* into, const unsigned* from) {
    long long n = threads_of_cluster(c), words = clock_words(c);
    unsigned set = join_sets(c, into[n], from[n]);
    for (long long i = 0; i < words; i += CLOCK_STEP) {
        unsigned x[CLOCK_STEP];
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) x[j] = into[i + j] < from[i + j] ? from[i + j] : into[i + j];
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) into[i + j] = x[j];
    }
    into[n] = set;
}

__device__ __noinline__ void forget(Context* c, unsigned* clock) {
    for (long long i = 0; i < clock_words(c); i += CLOCK_STEP)
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) clock[i + j] = 0;
}

// Advances the thread's own number: its later events come after those that it has published.
__device__ __noinline__ void tick(Context* c, long long t) {
    *own_clock(c, t) += 1;
    c->checks->in_step &= ~(1ll << c->rank);
}

// Whether all threads of the block have the same clock, and the same number in it.
__device__ __forceinline__ bool is_in_step(Context* c) { return c->checks->in_step >> c->rank & 1; }

__device__ __forceinline__ bool is_in_run(const History* h, long long run, unsigned clock) {
    return run <= h->runs_used && h->runs[run].base < clock && (run == h->runs_used || clock <= h->runs[run + 1].base);
}

// The run of a cluster in which a clock had this value: its number among the launch's.
__device__ long long run_of(Context* c, unsigned clock) {
    History* h = c->checks->history;
    if (is_in_run(h, h->found_run, clock)) return h->found_run;
    long long low = 0, high = h->runs_used, before = h->found_before;
    h->found_before = h->found_run;
    if (is_in_run(h, before, clock)) return h->found_run = before;
    while (low < high) {
        long long middle = (low + high + 1) / 2;
        if (h->runs[middle].base < clock) low = middle;
        else high = middle - 1;
    }
    return h->found_run = low;
}

__device__ bool is_of_this_cluster(Context* c, const Event* e) {
    const History* h = c->checks->history;
    if (e->clock <= c->checks->base) return false;
    return !h->switches || h->runs[run_of(c, e->clock)].cluster == c->checks->run;
}

// Goes through the snapshots in a set that threads of a cluster have made in some run, or after it.
struct SnapshotsOf {
    Context* c;
    unsigned set;
    long long run, at;

    __device__ __forceinline__ SnapshotsOf(Context* c, unsigned set, long long run) : c(c), set(set), run(run), at(c->checks->history->runs[run].first_snapshot) {}

    // Returns -1 after the last one.
    __device__ __forceinline__ long long next() {
        const History* h = c->checks->history;
        for (;;) {
            long long end = run == h->runs_used ? h->snapshots_used : h->runs[run + 1].first_snapshot;
            for (; at < end; ++at)
                if (set_at(c, set)[at / 64] >> (at % 64) & 1) return at++;
            run = h->runs[run].next;
            if (!run) return -1;
            at = h->runs[run].first_snapshot;
        }
    }
};

// Of how many threads of another cluster a set of snapshots has what they did when their clocks
// had some value. If threads run a block again, its first run conflicts with nothing: it counts as
// known to all.
enum { NONE_OF_THEM, ALL_OF_THEM, SOME_OF_THEM };

__device__ int known_threads(Context* c, unsigned set, unsigned clock) {
    const History* h = c->checks->history;
    if (set == EVERYTHING || (h->has_undone && h->runs[run_of(c, clock)].block == UNDONE)) return ALL_OF_THEM;
    if (set == EMPTY_SET) return NONE_OF_THEM;
    int found = NONE_OF_THEM;
    SnapshotsOf all(c, set, run_of(c, clock));
    for (long long i = all.next(); i >= 0; i = all.next()) {
        const unsigned* bounds = h->snapshot_bounds + 2 * i;
        if (clock > bounds[1]) continue;
        if (clock <= bounds[0]) return ALL_OF_THEM;
        found = SOME_OF_THEM;
    }
    return found;
}

// Whether an event of another cluster is known to thread t.
__device__ __noinline__ bool is_known(Context* c, long long t, const Event* e) {
    long long n = threads_of_cluster(c);
    unsigned set = known_to(c, t)[n];
    int found = known_threads(c, set, e->clock);
    if (found != SOME_OF_THEM) return found == ALL_OF_THEM;
    SnapshotsOf all(c, set, run_of(c, e->clock));
    for (long long i = all.next(); i >= 0; i = all.next())
        if (c->checks->history->snapshots[i * n + e->thread] >= e->clock) return true;
    return false;
}

__device__ bool ordered(Context* c, long long t, const Event* earlier) {
    if (!is_of_this_cluster(c, earlier)) return is_known(c, t, earlier);
    return earlier->thread == number_of(c, t) || known_to(c, t)[earlier->thread] >= earlier->clock;
}

// Returns the set of snapshots that thread t and the lanes after it all know; -1 if they know different ones.
__device__ long long common_set(Context* c, long long t, int lanes) {
    long long words = clock_words(c), n = threads_of_cluster(c);
    const unsigned *common = common_of(c) + n, *rows = row_of(c, t) + n;
    const unsigned char* has_common = c->checks->has_common + number_of(c, t);
    if (is_in_step(c)) return *common;
    unsigned first = has_common[0] ? *common : *rows;
    for (int lane = 1; lane < lanes; ++lane)
        if ((has_common[lane] ? *common : rows[lane * words]) != first) return -1;
    return first;
}

// Neighbouring lanes, of which thread t is the first, follow an event each, which differ in the thread
// alone. Returns how many lanes know theirs.
__device__ __noinline__ int lanes_that_know(Context* c, long long t, const Event* first, int lanes) {
    if (!first->clock) return lanes;
    bool is_near = is_of_this_cluster(c, first);
    if (is_near && first->thread == number_of(c, t)) return lanes;
    long long set = is_near ? -1 : common_set(c, t, lanes);
    int found = set < 0 ? SOME_OF_THEM : known_threads(c, (unsigned)set, first->clock);
    if (found != SOME_OF_THEM) return found == ALL_OF_THEM ? lanes : 0;
    int knowing = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        Event e = of_lane(first, lane);
        knowing += ordered(c, t + lane, &e);
    }
    return knowing;
}

// A cluster ends or waits for others: clocks of those that run next are later. c: of rank 0
__device__ void end_run(Context* c) {
    Checks* k = c->checks;
    for (long long t = 0; t < threads_of_cluster(c); ++t)
        if (k->history->last_clock < k->own[t]) k->history->last_clock = k->own[t];
}

// Returns the number of a new run of the cluster. c: of rank 0
__device__ long long new_run(Context* c) {
    History* h = c->checks->history;
    Run* run = h->runs + ++h->runs_used;
    run->base = h->last_clock;
    run->block = c->block;
    run->first_snapshot = h->snapshots_used;
    run->next = 0;
    return c->checks->last_run = h->runs_used;
}

// Continues a cluster that has waited while others ran. c: of rank 0
__device__ void continue_clocks(Context* c) {
    Checks* k = c->checks;
    History* h = k->history;
    long long before = k->last_run;
    if (before == h->runs_used) return;
    h->switches += 1;
    long long run = new_run(c);
    h->runs[before].next = (int)run;
    h->runs[run].cluster = (int)k->run;
    for (long long t = 0; t < threads_of_cluster(c); ++t) k->own[t] = (unsigned)h->last_clock + 1;
}

// Begins the first run of a cluster. c: of rank 0
__device__ __noinline__ void begin_clocks(Context* c) {
    Checks* k = c->checks;
    long long n = threads_of_cluster(c);
    end_run(c);
    k->base = k->settled = k->history->last_clock;
    k->run = new_run(c);
    k->history->runs[k->run].cluster = (int)k->run;
    for (long long b = 0; b < c->cluster_blocks; ++b) {
        unsigned* common = common_of(c + b);
        for (long long i = 0; i < clock_words(c); ++i) common[i] = (unsigned)k->base;
        common[n] = EMPTY_SET;
        assign(c, floor_of(c + b), common);
    }
    for (long long t = 0; t < n; ++t) {
        k->own[t] = (unsigned)k->base + 1;
        k->has_common[t] = 1;
        k->fenced_far[t] = k->pending_from[t] = 0;
        k->fenced_set[t] = 0;
    }
    k->in_step = ~0ll;
    k->near_used = 0;
    k->unshared_fences = 0;
    if (k->history->sets_used < 2) k->history->sets_used = 2;
}

// ---- fences and barriers

// how: ACQUIRES, RELEASES or both; reach: the distance that the fence's scope includes
extern "C" __device__ void rt_fence(Context* c, long long t, long long how, long long reach) {
    Checks* k = c->checks;
    if (!k) return;
    long long n = number_of(c, t);
    k->unshared_fences |= 1ll << c->rank;
    k->unmet = 1;
    for (int distance = 0; distance <= reach; ++distance) {
        int bit = 1 << distance;
        if (how & ACQUIRES && k->pending_from[n] & bit) join(c, clock_of(c, t), fence_of(c, PENDING, distance, t));
        if (how & ACQUIRES) k->pending_from[n] &= ~bit;
    }
    if (!(how & RELEASES)) return;
    for (int distance = 0; distance <= reach; ++distance) {
        assign(c, fence_of(c, FENCED, distance, t), clock_of(c, t));
        k->fenced_far[n] |= 1 << distance;
    }
    if (reach == OTHER_CLUSTER) k->fenced_set[n] = 0;
    tick(c, t);
}

// fence.proxy.async: the asynchronous proxy can read all writes that thread t knows of. PTX needs
// one "between prior writes to shared memory matrices and subsequent reads" by wgmma (wgmma.fence),
// and wherever memory is accessed "across multiple proxies" (Async Proxy, of cp.async.bulk and
// wgmma). It counts anywhere on the path of base causality, as an alias fence does (Causality
// Order): in the thread that wrote, in the one that reads, or in one between them. The implicit
// fence after an asynchronous operation makes only that operation's own results visible.
extern "C" __device__ void rt_fence_proxy(Context* c, long long t) {
    if (!c->checks || clock_words(c) < fenced_numbers(c) + threads_of_cluster(c)) return;
    long long n = threads_of_cluster(c);
    unsigned *clock = clock_of(c, t), *fenced = clock + fenced_numbers(c);
    for (long long u = 0; u < n; ++u) fenced[u] = clock[u];
    tick(c, t);
}

// Returns whether a proxy fence follows a write that thread t knows of, on the way to this thread.
__device__ __noinline__ bool passed_proxy_fence(Context* c, long long t, const Event* write) {
    return known_to(c, t)[fenced_numbers(c) + write->thread] >= write->clock;
}

// Joins one clock into another, which may still be empty.
__device__ void join_or_assign(Context* c, int* levels, int distance, unsigned* into, const unsigned* from) {
    if (*levels >> distance & 1) join(c, into, from);
    else assign(c, into, from);
    *levels |= 1 << distance;
}

// Gives the threads at a barrier the joined clocks of one kind and distance that they have.
__device__ void share_clocks(Context* c, const unsigned char* here, int which, int distance) {
    unsigned* joined = c->checks->shared_row;
    int any = 0;
    for (long long t = 0; t < c->threads; ++t)
        if (here[t] && *levels_of(c, which, t) >> distance & 1)
            join_or_assign(c, &any, 0, joined, fence_of(c, which, distance, t));
    for (long long t = 0; t < c->threads; ++t) {
        if (!here[t]) continue;
        assign(c, fence_of(c, which, distance, t), joined);
        *levels_of(c, which, t) |= 1 << distance;
        if (which == FENCED && distance == OTHER_CLUSTER) c->checks->fenced_set[number_of(c, t)] = 0;
    }
}

// Joins the fenced and the pending clocks of the threads at a barrier, so that they are the same
// for all of them. here: a mark for each thread of the block.
__device__ __noinline__ void share_fences(Context* c, const unsigned char* here) {
    Checks* k = c->checks;
    if (!(k->unshared_fences >> c->rank & 1)) return;
    int fenced = 0, pending = 0;
    bool is_everybody = true;
    for (long long t = 0; t < c->threads; ++t) {
        if (here[t]) fenced |= k->fenced_far[number_of(c, t)], pending |= k->pending_from[number_of(c, t)];
        is_everybody &= here[t] || c->thread[t].state == STATE_EXITED;
    }
    if (!(fenced | pending)) return;
    if (is_everybody) k->unshared_fences &= ~(1ll << c->rank);
    for (int which = FENCED; which <= PENDING; ++which)
        for (int distance = 0; distance < DISTANCES; ++distance)
            if ((which == PENDING ? pending : fenced) >> distance & 1) share_clocks(c, here, which, distance);
}

// ---- what is published at an address

// Returns an address's entry; null if there is none. make: make one. The last entry is for all
// addresses for which there was no room, so clocks are only added to it.
__device__ Sync* sync_at(Context* c, Address address, bool make) {
    History* h = c->checks->history;
    if (window_of(address) == WINDOW_SHARED) address += c->checks->slot << 48;  // clusters share no such memory
    unsigned at = (unsigned)((address >> 2) * 0x9e3779b97f4a7c15ull >> 40);
    for (int i = 0; i < SYNC_ADDRESSES; ++i) {
        Sync* s = h->syncs + (at + i) % SYNC_ADDRESSES;
        if (s->address == address) return s;
        if (s->address) continue;
        if (h->syncs_used >= SYNC_ADDRESSES / 4 * 3) return h->syncs + SYNC_ADDRESSES;
        if (!make) return 0;
        h->syncs_used += 1;
        s->address = address;
        return s;
    }
    return 0;
}

__device__ bool only_gains(Context* c, const Sync* s) { return s == c->checks->history->syncs + SYNC_ADDRESSES; }

// The clock that threads of the same block or of the same cluster join at an address.
__device__ unsigned* near_of(Context* c, const Sync* s, int distance) {
    return c->checks->near + (s->near * 2ll + distance) * clock_words(c);
}

// Adds to a clock what threads of this cluster have published and get back from others.
__device__ void join_returned(Context* c, unsigned* clock, unsigned set) {
    const Checks* k = c->checks;
    long long n = threads_of_cluster(c);
    SnapshotsOf own(c, set, k->run);
    for (long long i = set > EVERYTHING ? own.next() : -1; i >= 0; i = own.next())
        for (long long u = 0; u < n; ++u) {
            unsigned published = k->history->snapshots[i * n + u];
            if (clock[u] < published) clock[u] = published;
        }
    for (long long u = 0; set == EVERYTHING && u < n; ++u) clock[u] = k->own[u];
}

__device__ void observe(Context* c, long long t, Address address, bool acquires, int reach) {
    Checks* k = c->checks;
    long long number = number_of(c, t), n = threads_of_cluster(c);
    Sync* s = sync_at(c, address, false);
    if (!s) return;
    if (!acquires) k->unshared_fences |= 1ll << c->rank;
    if (s->run == k->run) {
        int distance = s->rank == c->rank || only_gains(c, s) ? SAME_BLOCK : SAME_CLUSTER;
        if (reach < distance) return;
        unsigned* known = near_of(c, s, distance);
        if (acquires) join(c, clock_of(c, t), known);
        else join_or_assign(c, k->pending_from + number, distance, fence_of(c, PENDING, distance, t), known);
    } else if (reach == OTHER_CLUSTER && s->set && window_of(address) != WINDOW_SHARED) {
        unsigned* into = acquires ? clock_of(c, t) : fence_of(c, PENDING, OTHER_CLUSTER, t);
        if (!acquires && !(k->pending_from[number] >> OTHER_CLUSTER & 1)) forget(c, into);
        if (!acquires) k->pending_from[number] |= 1 << OTHER_CLUSTER;
        into[n] = join_sets(c, into[n], s->set);
        if (k->history->switches) join_returned(c, into, s->set);
    }
}

// Gives an address clocks for this run, which are empty if there is room for more.
__device__ void take_near(Context* c, Sync* s) {
    Checks* k = c->checks;
    bool has_room = k->near_used < NEAR_CLOCKS - 1;  // the last clocks are for all other addresses
    s->near = (int)(has_room ? k->near_used++ : NEAR_CLOCKS - 1);
    for (int distance = 0; has_room && distance < 2; ++distance) forget(c, near_of(c, s, distance));
    s->run = (int)k->run;
}

// chained: the write is part of an atomic operation, after which an earlier release still counts.
__device__ void publish(Context* c, long long t, Address address, bool releases, int reach, bool chained) {
    Checks* k = c->checks;
    long long number = number_of(c, t), n = threads_of_cluster(c);
    int far = releases ? (2 << reach) - 1 : k->fenced_far[number] & ((2 << reach) - 1);
    bool is_global = window_of(address) != WINDOW_SHARED;
    Sync* s = sync_at(c, address, far != 0);
    if (!s) return;
    if (only_gains(c, s)) chained = true;
    if (!far && chained) return;
    if (s->run != k->run) {
        take_near(c, s);
        for (int distance = 0; distance < 2; ++distance)
            if (chained && is_global) near_of(c, s, distance)[n] = join_sets(c, near_of(c, s, distance)[n], s->set);
    } else if (!chained && s->near != NEAR_CLOCKS - 1) {
        forget(c, near_of(c, s, SAME_BLOCK));
        forget(c, near_of(c, s, SAME_CLUSTER));
    } else if (s->rank != c->rank) assign(c, near_of(c, s, SAME_BLOCK), near_of(c, s, SAME_CLUSTER));
    s->run = (int)k->run;
    s->rank = (int)c->rank;
    for (int distance = 0; distance < 2; ++distance)
        if (far >> distance & 1)
            join(c, near_of(c, s, distance), releases ? clock_of(c, t) : fence_of(c, FENCED, distance, t));
    if (!chained) s->set = EMPTY_SET;
    if (is_global && far >> OTHER_CLUSTER & 1) {
        unsigned set = releases ? snapshot(c, clock_of(c, t)) : k->fenced_set[number];
        if (!set) set = k->fenced_set[number] = snapshot(c, fence_of(c, FENCED, OTHER_CLUSTER, t));
        s->set = join_sets(c, s->set, set);
    }
    if (releases) tick(c, t);
}

// A strong access: it publishes a clock, and joins published ones.
__device__ __noinline__ void synchronise(Context* c, long long t, Address address, int access) {
    int reach = reach_of(access);
    bool writes = access & ACCESS_WRITE, atomic = access & ACCESS_ATOMIC;
    if (!writes || atomic) observe(c, t, address, access & ACCESS_ACQUIRE, reach);
    if (writes) publish(c, t, address, access & ACCESS_RELEASE, reach, atomic);
}

// Mbarriers order accesses whatever their scope says: CUTLASS arrives at those of other blocks
// without `.cluster`. Those that are relaxed order them only with fences.
__device__ __noinline__ void arrive(Context* c, long long t, Address mbarrier, bool releases) {
    publish(c, t, mbarrier, releases, OTHER_CLUSTER, true);
}

// The last bytes of an mbarrier stand for its complete phases, the first ones for all arrivals.
__device__ Address complete_phases(Address mbarrier) { return mbarrier + 4; }

__device__ __noinline__ void end_phase(Context* c, Address mbarrier) {
    const Sync* arrivals = sync_at(c, mbarrier, false);
    if (!arrivals || arrivals->run != c->checks->run) return;
    Sync* complete = sync_at(c, complete_phases(mbarrier), true);
    if (complete->run != c->checks->run) take_near(c, complete);
    for (int distance = 0; distance < 2; ++distance) {
        unsigned *to = near_of(c, complete, distance), *from = near_of(c, arrivals, distance);
        if (only_gains(c, complete)) join(c, to, from);
        else assign(c, to, from);
    }
    complete->rank = arrivals->rank;
}

__device__ __noinline__ void leave(Context* c, long long t, Address mbarrier, bool acquires) {
    observe(c, t, complete_phases(mbarrier), acquires, OTHER_CLUSTER);
}
