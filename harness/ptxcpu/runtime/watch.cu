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

// Returns a bit for each lane that accesses the bytes after those of the lane before.
__device__ unsigned long long followers(const Address* addresses, unsigned long long lanes, long long bytes) {
    unsigned long long found = 0;
    for (int lane = 0; lane < 64 && lanes >> lane; lane += 8)  // a unit has a multiple of eight lanes
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const Address* one = addresses + lane + i;
            found |= (unsigned long long)(*one == one[lane + i > 0 ? -1 : 0] + bytes) << lane + i;
        }
    return found & lanes;
}

// Some bytes of a line that neighbouring lanes access.
struct LineAccess {
    GlobalLine* line;
    int lanes, begin;

    // first: the offset of a lane's address in its window
    __device__ __forceinline__ LineAccess(GlobalLine* lines, long long first, unsigned long long following, int lane, long long bytes) {
        int shift = __ffsll(bytes) - 1;
        line = lines + first / GLOBAL_LINE;
        begin = (int)(first & GLOBAL_LINE - 1);
        int end = line->lane_bytes && begin < line->seam ? line->seam : GLOBAL_LINE, most = end - begin >> shift;
        lanes = __ffsll(~(following >> lane >> 1));
        if (lanes > most) lanes = most;
    }

    // Returns the part of the line that has exactly these bytes; null if there can be none.
    __device__ __forceinline__ LinePart* part(int bytes) {
        int end = begin + lanes * bytes, seam = begin ? begin : end;
        if (line->lane_bytes == IN_CELLS || (begin && end < GLOBAL_LINE)) return 0;
        if (!line->lane_bytes) {
            line->lane_bytes = bytes;
            line->seam = seam;
        }
        if (line->lane_bytes != bytes) return 0;
        if (line->seam == GLOBAL_LINE && seam < GLOBAL_LINE) {
            line->tail.write = of_lane(&line->head.write, seam / bytes);
            line->tail.read = of_lane(&line->head.read, seam / bytes);
            line->tail.other_read = of_lane(&line->head.other_read, seam / bytes);
            line->seam = seam;
        }
        return line->seam != seam ? 0 : begin ? &line->tail : &line->head;
    }

    // Returns the other lanes of these.
    __device__ __forceinline__ unsigned long long without(unsigned long long all, int lane) {
        return all & ~((2ull << lanes - 1) - 1 << lane);
    }
};

// Records plain accesses of thread t and the lanes after it to a part of a line. Returns false, and has
// recorded nothing, if one may be a mistake, or if the part cannot describe them.
__device__ bool records_part(Context* c, long long t, long long pc, LinePart* part, int access, int lanes) {
    const unsigned* own = own_clock(c, t);
    for (int lane = 1; !is_in_step(c) && lane < lanes; ++lane)
        if (own[lane] != own[0]) return false;
    if (lanes_that_know(c, t, &part->write, lanes) < lanes) return false;
    int knowing = lanes_that_know(c, t, &part->read, lanes);
    if (access & ACCESS_WRITE) {
        if (knowing < lanes || lanes_that_know(c, t, &part->other_read, lanes) < lanes) return false;
        part->read.clock = part->other_read.clock = 0;  // who knows of this write knows of them
    } else {
        if (0 < knowing && knowing < lanes) return false;
        if (!knowing) part->other_read = part->read;
    }
    record(c, access & ACCESS_WRITE ? &part->write : &part->read, t, pc, access);
    return true;
}

// Returns whether n bytes may be accessed as far as their flags say, and notes that they are written.
__device__ bool passes_flags(unsigned char* flags, long long n, bool is_write) {
    const unsigned WRITTEN = BYTE_WRITTEN * 0x01010101u;
    unsigned* words = (unsigned*)flags;
    if (are_written(flags, n)) return true;
    bool are_free = is_write;
    for (long long i = 0; i < n / 4; ++i) are_free &= words[i] == WRITTEN || words[i] == 0;
    for (long long i = 0; are_free && i < n / 4; ++i) words[i] = WRITTEN;
    return are_free;
}

// Checks an access to memory that blocks share. The checks have no flags for bytes outside an array, so
// those are left to threads.
__device__ void watch_lanes(Context* c, long long t, unsigned long long lanes, const Address* addresses, long long pc,
                            long long bytes, long long access) {
    Checks* k = c->checks;
    Address one = addresses[__ffsll(lanes) - 1], begin = one - offset_in_window(one);
    long long window = window_of(one);
    const Span* span = c->windows + window;
    long long end = span->bytes < k->global_bytes[window] ? span->bytes : k->global_bytes[window];
    bool is_plain = !(access & ~ACCESS_WRITE) && k->global_cells[window] && k->global_cell_width == 4 && bytes % 4 == 0;
    if (access & ACCESS_WRITE && !span->writable) is_plain = false;
    unsigned char* all_ready = ready_flags(c, t, begin);
    unsigned long long following = is_plain ? followers(addresses, lanes, bytes) : 0;
    k->unmet = 1;
    while (lanes) {
        int lane = __ffsll(lanes) - 1;
        Address address = addresses[lane];
        long long first = (long long)(address - begin);
        if (is_plain && first >= 0 && first + bytes <= end && !(first & (bytes - 1))) {
            LineAccess part_access(k->global_lines[window], first, following, lane, bytes);
            LinePart* part = part_access.part((int)bytes);
            long long n = part_access.lanes * bytes;
            bool passes = part && first + n <= end && (!all_ready || passes_flags(all_ready + first, n, access & ACCESS_WRITE));
            if (passes && records_part(c, t + lane, pc, part, (int)access, part_access.lanes)) {
                lanes = part_access.without(lanes, lane);
                continue;
            }
        }
        lanes &= lanes - 1;
        if (!rt_locate(c, t + lane, address, bytes, access)) {
            c->watch->doubt = -1;
            return;
        }
        check_access(c, t + lane, pc, address, bytes, (int)access);
    }
}

// addresses: one for each lane
extern "C" __device__ void rt_watch_global(Context* c, long long t, unsigned long long lanes, const Address* addresses,
                                           long long pc, long long bytes, long long access) {
    Checks* before = c->checks;
    c->checks = c->watch->checks;
    watch_lanes(c, t, lanes, addresses, pc, bytes, access);
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
