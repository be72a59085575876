// Checks the units of the vector path (vector/watched.py). In shared memory, only barriers of the
// whole block order its threads, so one word per cell for the last write and one for the last read
// suffice. Accesses to memory that blocks share are reported to the checks of the thread path. A
// finding here only means a possible error; the checks of the thread path then find the error.

// Marks a cell that belongs to no variable, or into which a copy is in flight.
const int NOBODYS = 0x7fffffff;

// Marks a cell of an mbarrier. Only instructions for mbarriers may access it, from the next interval on.
const int MBARRIERS = NOBODYS - 1;

__device__ void forget_accesses(Watch* w) {
    for (long long i = 0; i < w->cells; ++i) w->writes[i] = w->fresh[i], w->reads[i] = 0;
    w->now = 0;
    w->mbarriers = 0;
}

__device__ void next_interval(Watch* w) {
    w->now += WATCH_INTERVAL;
}

// Begins a block: a new run of the checks' clocks. In a kernel that orders accesses by more than barriers,
// all functions of the runtime use the checks.
__device__ void begin_watch(Context* c) {
    Watch* w = c->watch;
    c->checks = w->checks;
    begin_checks(c);
    for (long long t = 0; t < c->threads; ++t) c->checks->here[t] = 1;  // at every barrier
    c->checks->unmet = 0;
    if (!w->keeps_clocks) c->checks = 0;
    if (w->mbarriers || !w->now || w->now > NOBODYS / 2) forget_accesses(w);
    next_interval(w);
    w->first = w->now;
}

// Sets the words of the cells that a copy writes.
__device__ void mark_written(Watch* w, long long address, long long bytes, int word) {
    long long last = cell_of(address + bytes - 1, w->cell_width);
    for (long long i = cell_of(address, w->cell_width); i <= last; ++i) w->writes[i] = word;
}

// Returns whether the block may have an error.
__device__ bool is_doubtful(Context* c) {
    Watch* w = c->watch;
    if (w && w->checks->history->found) w->doubt = -1;
    return w && w->doubt < 0;
}

// Ends a block. If threads will run it again, what it has done counts as known to everybody.
__device__ void end_watch(Context* c, bool is_done) {
    Watch* w = c->watch;
    if (is_doubtful(c)) w->block = c->block;
    if (is_done) return;
    w->checks->history->runs[w->checks->run].block = UNDONE;
    w->checks->history->has_undone = 1;
}

// Leaves a block to threads. What it has published to other blocks cannot be undone, so threads must run
// the launch from its beginning.
__device__ void give_up(Context* c) {
    Watch* w = c->watch;
    if (w && w->keeps_clocks && w->doubt >= 0) w->doubt = -1, w->block = c->block;
}

// All live units are at a barrier. Returns whether it is one barrier, with all threads.
__device__ bool passes_barrier(Context* c, long long units) {
    Watch* w = c->watch;
    for (long long u = 0; u < units; ++u)
        if (c->thread[u].state != STATE_BARRIER || c->thread[u].pc != c->thread[0].pc) return false;
    if (w->now > NOBODYS - 2 * WATCH_INTERVAL) return false;
    next_interval(w);
    if (!w->checks->unmet) return true;
    Checks* before = c->checks;
    c->checks = w->checks;
    meet(c, 0);
    w->checks->unmet = 0;
    c->checks = before;
    return true;
}

// addresses: offsets in the block's shared memory, one for each lane; lanes: a bit for each lane that
// accesses it
extern "C" __device__ void rt_watch_shared(Context* c, long long t, unsigned long long lanes,
                                           const long long* addresses, long long bytes, long long stores) {
    Watch* w = c->watch;
    for (; lanes; lanes &= lanes - 1) {
        int lane = __ffsll(lanes) - 1, own = w->now + (int)t + lane;
        long long first = cell_of(addresses[lane], w->cell_width), last = cell_of(addresses[lane] + bytes - 1, w->cell_width);
        for (long long i = first; i <= last; ++i) {
            int written = w->writes[i], read = w->reads[i];
            if (written >= w->now && written != own) w->doubt = -1;
            if (stores) {
                if (read >= w->now && read != own) w->doubt = -1;
                w->writes[i] = own;
            } else {
                if (written < w->first) w->doubt = -1;
                w->reads[i] = read < w->now || read == own ? own : w->now + MANY_THREADS;
            }
        }
    }
}

// Checks an access to memory that blocks share. The checks have no flags for bytes outside an array, so
// those are left to threads. addresses: one for each lane
extern "C" __device__ void rt_watch_global(Context* c, long long t, unsigned long long lanes, const Address* addresses,
                                           long long pc, long long bytes, long long access) {
    Checks* before = c->checks;
    c->checks = c->watch->checks;
    for (; lanes; lanes &= lanes - 1) {
        int lane = __ffsll(lanes) - 1;
        if (rt_locate(c, t + lane, addresses[lane], bytes, access)) check_access(c, t + lane, pc, addresses[lane], bytes, (int)access);
        else c->watch->doubt = -1;
    }
    c->checks = before;
}

extern "C" __device__ void rt_watch_fence(Context* c, long long t, unsigned long long lanes, long long how,
                                          long long reach) {
    for (; lanes; lanes &= lanes - 1) rt_fence(c, t + __ffsll(lanes) - 1, how, reach);
}

// Begins a copy to shared memory by each of these lanes. No thread may access its cells before a wait. The
// addresses are multiples of the number of bytes, which is a multiple of a cell's.
extern "C" __device__ void rt_watch_copy(Context* c, long long t, unsigned long long lanes,
                                         const long long* addresses, long long bytes) {
    Watch* w = c->watch;
    long long count = cell_of(bytes, w->cell_width);
    for (; lanes; lanes &= lanes - 1) {
        int lane = __ffsll(lanes) - 1, own = w->now + (int)t + lane;
        long long first = cell_of(addresses[lane], w->cell_width);
        for (long long i = first; i < first + count; ++i) {
            bool is_written = w->writes[i] >= w->now && w->writes[i] != own;
            if (is_written || (w->reads[i] >= w->now && w->reads[i] != own)) w->doubt = -1;
            w->writes[i] = NOBODYS;
        }
    }
}

// ---- mbarriers and bulk copies. The order that an mbarrier establishes is not known here, except
// that the copies that it counts have arrived once a thread has waited.

// Records a store to shared memory; the cells get this word.
__device__ void watch_store(Context* c, long long t, Address address, long long bytes, int word) {
    long long first = offset_in_block(address);
    if (window_of(address) != WINDOW_SHARED) {
        c->watch->doubt = -1;
        return;
    }
    rt_watch_shared(c, t, 1, &first, bytes, 1);
    mark_written(c->watch, first, bytes, word);
}

// t: the thread that initialises an mbarrier; -1 for other instructions
__device__ void watch_mbarrier(Context* c, long long t, Address mbarrier) {
    const long long BYTES = 8;
    Watch* w = c->watch;
    long long first = offset_in_block(mbarrier), width = w->cell_width;
    if (t >= 0) {
        watch_store(c, t, mbarrier, BYTES, MBARRIERS);
        w->mbarriers = 1;
    }
    for (long long i = cell_of(first, width); w->doubt >= 0 && i <= cell_of(first + BYTES - 1, width); ++i) {
        if (t >= 0) w->reads[i] = w->now;
        else if (w->writes[i] != MBARRIERS || w->reads[i] >= w->now) w->doubt = -1;
    }
}

// Begins a bulk copy by thread t. No thread may access its cells before a thread has waited for it.
__device__ void watch_bulk(Context* c, long long t, Address to, long long bytes) {
    watch_store(c, t, to, bytes, NOBODYS);
}

__device__ void watch_arrival(Context* c, long long t, Address to, long long bytes) {
    mark_written(c->watch, offset_in_block(to), bytes, c->watch->now + (int)t);
}
