// Asynchronous copies and mbarriers. A copy is delivered only when a thread waits for it: cp.async in
// groups of a thread or through an mbarrier that tracks it, cp.async.bulk through an mbarrier or in groups.

struct Copy {
    char* to;
    const char* from;
    Address address;
    int bytes, filled, group, pc;  // `filled` bytes come from the source, the rest is zero
    unsigned clock;                // the thread's number in its own clock when an mbarrier began to track it, or 0
};

struct Bulk {
    char* to;
    const char* from;
    Address address, mbarrier;  // mbarrier 0: a copy to global memory, in a bulk group
    long long bytes, thread, group, pc;
    Context* issuer;  // the block of the thread
};

// The copies of the lanes of a unit of the vector path.
struct UnitCopies {
    long long issued, delivered, group, unused;
};

// An mbarrier that tracks copies.
struct Tracker {
    Address mbarrier;
    long long phase;              // how many phases have ended since it began to track copies
    long long current, complete;  // threads whose copies are not delivered: of this phase, and of those before
};

// The copies of one thread, or of a unit, that an mbarrier tracks.
struct Tracked {
    long long end;    // the number of the copy after the last one; 0 if there is none
    long long phase;  // in which the mbarrier counts them
};

// ---- cp.async

__device__ void deliver(Context* c, long long t, Copy* copy) {
    copy_bytes(copy->to, copy->from, copy->filled);
    for (int i = copy->filled; i < copy->bytes; ++i) copy->to[i] = 0;
    if (c->checks) check_arrival(c, t, copy->pc, copy->address, copy->bytes, copy->clock);
}

__device__ Copy* copy_slot(Context* c, long long t, int i) {
    return c->copies + t * COPIES_IN_FLIGHT + i % COPIES_IN_FLIGHT;
}

__device__ void deliver_until(Context* c, long long t, int group) {
    Thread* thread = c->thread + t;
    while (thread->delivered < thread->copies) {
        Copy* copy = copy_slot(c, t, thread->delivered);
        if (copy->group >= group) return;
        deliver(c, t, copy);
        thread->delivered += 1;
    }
}

// Returns the place of a copy that another lane has made by the same instruction, from the same source.
// In memcpy_async of CUDA's cooperative groups, lanes without an element of their own repeat the last one.
__device__ char* repeated(Context* c, long long t, long long pc, Address to, const char* source,
                          long long bytes, long long filled) {
    long long other = last_writer(c, pc, to);
    if (other < 0 || other == t || other / LANES != t / LANES) return 0;
    for (int i = 0; i < COPIES_IN_FLIGHT; ++i) {
        const Copy* copy = copy_slot(c, other, i);
        if (copy->address == to && copy->from == source && copy->pc == pc && copy->bytes == bytes && copy->filled == filled)
            return copy->to;
    }
    return 0;
}

// bypass: whether the copy bypasses the L1 cache
extern "C" __device__ long long rt_copy(Context* c, long long t, long long pc, Address to, Address from,
                                        long long bytes, long long filled, long long bypass) {
    Thread* thread = c->thread + t;
    if (filled > bytes || filled < 0) filled = bytes;
    rt_trace(c, t, pc << 2, to, bytes << 8 | EVENT_TARGET);
    if (filled) rt_trace(c, t, pc << 2 | 1, from, bytes << 8 | (bypass ? EVENT_BYPASS : EVENT_SOURCE));
    char* source = filled ? checked_access(c, t, pc, from, filled, bytes, ACCESS_READ) : 0;
    char* target = c->checks && source ? repeated(c, t, pc, to, source, bytes, filled) : 0;
    if (!target) target = checked_access(c, t, pc, to, bytes, bytes, ACCESS_WRITE | ACCESS_ASYNC | ACCESS_OWN);
    if (!target || (filled && !source)) return 0;
    if (thread->copies == thread->delivered && !c->trackers_used) thread->copies = thread->delivered = 0;  // memory in the cache
    if (thread->copies - thread->delivered == COPIES_IN_FLIGHT) {  // room for one more
        deliver(c, t, copy_slot(c, t, thread->delivered));
        thread->delivered += 1;
    }
    Copy* copy = copy_slot(c, t, thread->copies++);
    copy->to = target; copy->from = source; copy->address = to;
    copy->bytes = (int)bytes; copy->filled = (int)filled;
    copy->group = thread->group; copy->pc = (int)pc; copy->clock = 0;
    return 1;
}

extern "C" __device__ void rt_copy_commit(Context* c, long long t) { c->thread[t].group += 1; }

// Wait until at most `pending` committed groups are in flight; a negative number waits for all.
extern "C" __device__ void rt_copy_wait(Context* c, long long t, long long pending) {
    Thread* thread = c->thread + t;
    deliver_until(c, t, pending < 0 ? 0x7fffffff : thread->group - (int)pending);
}

// ---- cp.async.mbarrier.arrive. The arrival counts at once, as copies may arrive at any time, but only a thread
// that waits for its phase can rely on it.

__device__ UnitCopies* copies_of_unit(Context* c, long long t) { return (UnitCopies*)(c->unit_copies + t * UNIT_COPY_BYTES); }

__device__ Tracker* tracker_of(Context* c, Address mbarrier) {
    for (long long i = 0; i < c->trackers_used; ++i)
        if (c->trackers[i].mbarrier == mbarrier) return c->trackers + i;
    return 0;
}

__device__ Tracked* tracked_by(Context* c, const Tracker* tracker, long long t) {
    return c->tracked + (tracker - c->trackers) * c->threads + t;
}

__device__ void deliver_before(Context* c, long long t, long long end) {
    if (c->unit_lanes) return deliver_of_unit(c, t, end);
    for (Thread* thread = c->thread + t; thread->delivered < end; ++thread->delivered)
        deliver(c, t, copy_slot(c, t, thread->delivered));
}

// Notes that other threads can know of the copies of thread t from now on, whoever waits for them first.
__device__ void note_clock(Context* c, long long t) {
    for (int i = c->thread[t].copies - 1; i >= c->thread[t].delivered && !copy_slot(c, t, i)->clock; --i)
        copy_slot(c, t, i)->clock = *own_clock(c, t);
}

// Lets an mbarrier track all copies of thread t, or of its unit.
extern "C" __device__ void rt_copy_arrive(Context* c, long long t, Address mbarrier) {
    if (c->unit_lanes) t -= t % c->unit_lanes;
    long long end = c->unit_lanes ? copies_of_unit(c, t)->issued : c->thread[t].copies;
    long long delivered = c->unit_lanes ? copies_of_unit(c, t)->delivered : c->thread[t].delivered;
    if (delivered == end) return;
    if (c->checks && !c->unit_lanes) note_clock(c, t);
    Tracker* tracker = tracker_of(c, mbarrier);
    if (!tracker && c->trackers_used == TRACKERS) return deliver_before(c, t, end);
    if (!tracker) {
        tracker = c->trackers + c->trackers_used++;
        *tracker = Tracker{mbarrier, 0, 0, 0};
        for (long long u = 0; u < c->threads; ++u) tracked_by(c, tracker, u)->end = 0;
    }
    Tracked* tracked = tracked_by(c, tracker, t);
    bool is_late = tracked->end && tracked->phase < tracker->phase;  // nothing has waited for that phase
    if (is_late) deliver_before(c, t, tracked->end);
    tracker->complete -= is_late;
    tracker->current += is_late || !tracked->end;
    *tracked = Tracked{end, tracker->phase};
}

// A phase of an mbarrier has ended.
__device__ void end_tracked_phase(Context* c, Address mbarrier) {
    Context* block = block_at(c, mbarrier);
    Tracker* tracker = block && block->trackers_used ? tracker_of(block, mbarrier) : 0;
    if (!tracker) return;
    tracker->phase += 1;
    tracker->complete += tracker->current;
    tracker->current = 0;
}

// A thread has waited for the last phase of an mbarrier that has ended.
__device__ void deliver_complete(Context* c, Address mbarrier) {
    Tracker* tracker = tracker_of(c, mbarrier);
    if (!tracker || !tracker->complete) return;
    for (long long t = 0; t < c->threads; ++t) {
        Tracked* tracked = tracked_by(c, tracker, t);
        if (!tracked->end || tracked->phase == tracker->phase) continue;
        deliver_before(c, t, tracked->end);
        tracked->end = 0;
    }
    tracker->complete = 0;
}

// ---- mbarriers: { pending arrivals : 20, expected arrivals : 20, bytes to come : 23, phase : 1 }

__device__ unsigned long long mbarrier_word(long long pending, long long expected, long long bytes,
                                            unsigned long long phase) {
    return (pending & 0xfffff) | (expected & 0xfffff) << 20 |
           (unsigned long long)(bytes & 0x7fffff) << 40 | phase << 63;
}

// Counts arrivals and bytes; the phase ends when none is missing. Threads that wait for it learn only of
// arrivals until then.
__device__ __noinline__ void mbarrier_advance(Context* c, Address mbarrier, unsigned long long* word, long long arrivals,
                                 long long bytes, long long dropped) {
    unsigned long long w = *word, phase = w >> 63;
    long long pending = (w & 0xfffff) - arrivals, expected = (w >> 20 & 0xfffff) - dropped;
    long long missing = ((long long)(w << 1) >> 41) - bytes;
    if (pending == 0 && missing == 0) {
        pending = expected, phase ^= 1;
        if (c->checks) end_phase(c, mbarrier);
        end_tracked_phase(c, mbarrier);
    }
    *word = mbarrier_word(pending, expected, missing, phase);
}

__device__ unsigned long long* mbarrier_at(Context* c, long long t, long long pc, Address mbarrier,
                                           int access) {
    char* word = checked_access(c, t, pc, mbarrier, 8, 8, access);
    if (c->watch && word) watch_mbarrier(c, access & ACCESS_INIT ? t : -1, mbarrier);
    return (unsigned long long*)word;
}

extern "C" __device__ long long rt_mbarrier_init(Context* c, long long t, long long pc,
                                                 Address mbarrier, long long count) {
    unsigned long long* word = mbarrier_at(c, t, pc, mbarrier, ACCESS_WRITE | ACCESS_OWN | ACCESS_INIT);
    if (word) *word = mbarrier_word(count, count, 0, 0);
    return word != 0;
}

// Arrive `count` times and expect `bytes` more; returns the state before, for a later test_wait.
// how: ACCESS_OWN if the mbarrier must be the block's own, and ACCESS_RELEASE unless it is relaxed
extern "C" __device__ long long rt_mbarrier_arrive(Context* c, long long t, long long pc,
                                                   Address mbarrier, long long count,
                                                   long long bytes, long long dropped,
                                                   long long how) {
    int access = ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_GPU_SCOPE | ACCESS_MBARRIER | (int)how;
    unsigned long long* word = mbarrier_at(c, t, pc, mbarrier, access);
    if (!word) return 0;
    if (c->checks && count) arrive(c, t, mbarrier, access & ACCESS_RELEASE);
    unsigned long long before = *word;
    mbarrier_advance(c, mbarrier, word, count, -bytes, dropped);
    return before;
}

__device__ void deliver_bulk(Context* c, Address mbarrier, unsigned long long* word) {
    for (long long i = 0; i < c->bulk_count;) {
        Bulk* bulk = c->bulk + i;
        if (bulk->mbarrier != mbarrier) {
            ++i;
            continue;
        }
        copy_bytes(bulk->to, bulk->from, bulk->bytes);
        if (c->checks) {
            check_arrival(bulk->issuer, bulk->thread, bulk->pc, bulk->address, bulk->bytes, 0);
            arrive(bulk->issuer, bulk->thread, mbarrier, true);
        }
        if (c->watch) watch_arrival(c, bulk->thread, bulk->address, bulk->bytes);
        mbarrier_advance(c, mbarrier, word, 0, bulk->bytes, 0);
        *bulk = c->bulk[--c->bulk_count];
    }
}

// Whether the phase of the given parity is over. Copies that complete it arrive now.
// order: ACCESS_ACQUIRE, or 0 where the wait is relaxed
extern "C" __device__ long long rt_mbarrier_over(Context* c, long long t, long long pc,
                                                 Address mbarrier, long long parity, long long order) {
    unsigned long long* word = mbarrier_at(c, t, pc, mbarrier, ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_GPU_SCOPE | ACCESS_MBARRIER | ACCESS_OWN);
    if (!word) return 0;
    deliver_bulk(c, mbarrier, word);
    bool over = *word >> 63 != (unsigned long long)parity;
    if (over && c->trackers_used) deliver_complete(c, mbarrier);
    if (over && c->checks) leave(c, t, mbarrier, order & ACCESS_ACQUIRE);
    return over;
}

__device__ __noinline__ bool phase_is_over(Context* c, long long t) {
    Thread* thread = c->thread + t;
    return rt_mbarrier_over(c, t, thread->pc >> 2, thread->argument, thread->parity & 1,
                            thread->parity & ACCESS_ACQUIRE);
}

// ---- cp.async.bulk, one-dimensional

// A copy is queued in the block whose mbarrier it completes, which is the block that it copies to.
// Without an mbarrier, it is queued in its thread's own block.
__device__ __noinline__ void begin_bulk(Context* c, long long t, long long pc, Address to, Address from,
                           long long bytes, Address mbarrier, int reach) {
    Context* block = mbarrier ? block_at(c, mbarrier) : c;
    if (bytes & 15 || bytes < 0 || (mbarrier && block_at(c, to) && block != block_at(c, to))) {
        rt_fault(c, t, CAUSE_BAD_OPERAND, pc, 0, bytes, 0);
        return;
    }
    if (!bytes) return;
    char* target = checked_access(c, t, pc, to, bytes, 16, ACCESS_WRITE | (mbarrier ? ACCESS_ASYNC | reach : 0));
    char* source = checked_access(c, t, pc, from, bytes, 16, ACCESS_READ | ACCESS_OWN | ACCESS_PROXY);
    if (!target || !source || !block) return;
    // If there is no room, the copies for one mbarrier arrive now: they may do so at any time.
    if (block->bulk_count == BULK_IN_FLIGHT && block->bulk->mbarrier) {
        Address first = block->bulk->mbarrier;
        deliver_bulk(block, first, (unsigned long long*)locate(block, 0, first, 8, 8, ACCESS_WRITE));
    }
    if (block->bulk_count == BULK_IN_FLIGHT) {
        rt_fault(c, t, CAUSE_ASYNC_OVERFLOW, pc, 0, 0, 0);
        return;
    }
    Bulk* bulk = block->bulk + block->bulk_count++;
    bulk->to = target; bulk->from = source; bulk->address = to; bulk->mbarrier = mbarrier;
    bulk->bytes = bytes; bulk->thread = t; bulk->group = c->thread[t].bulk_group; bulk->pc = pc;
    bulk->issuer = c;
    if (c->watch) watch_bulk(c, t, to, bytes);
}

extern "C" __device__ long long rt_bulk(Context* c, long long t, long long pc, Address to, Address from,
                                        long long bytes, Address mbarrier, long long reach) {
    begin_bulk(c, t, pc, to, from, bytes, mbarrier, (int)reach);
    return !c->fault;
}

// Copies to the same offset of every block in the mask, each with its own mbarrier.
extern "C" __device__ long long rt_bulk_multicast(Context* c, long long t, long long pc, Address to,
                                                  Address from, long long bytes, Address mbarrier,
                                                  long long mask) {
    if (mask >> c->cluster_blocks) rt_fault(c, t, CAUSE_BAD_OPERAND, pc, 0, mask, 0);
    if (!block_at(c, to) || !block_at(c, mbarrier)) begin_bulk(c, t, pc, to, from, bytes, mbarrier, 0);
    else
        for (long long b = 0; b < c->cluster_blocks && !c->fault; ++b)
            if (mask >> b & 1)
                begin_bulk(c, t, pc, address_in(c->cluster + b, to), from, bytes,
                           address_in(c->cluster + b, mbarrier), 0);
    return !c->fault;
}

// Reports copies into the block from other blocks for which it never waited.
__device__ __noinline__ void check_copies(Context* c) {
    for (long long i = 0; i < c->bulk_count; ++i) {
        Bulk* bulk = c->bulk + i;
        if (bulk->issuer != c)
            note(bulk->issuer, FINDING_KIND_BLOCK_MAY_BE_OVER, bulk->pc, -1, bulk->thread, -1, bulk->address,
                 bulk->bytes, ACCESS_WRITE | ACCESS_ASYNC, 0);
    }
}

extern "C" __device__ void rt_bulk_commit(Context* c, long long t) { c->thread[t].bulk_group += 1; }

extern "C" __device__ void rt_bulk_wait(Context* c, long long t, long long pending) {
    for (long long i = 0; i < c->bulk_count;) {
        Bulk* bulk = c->bulk + i;
        if (bulk->mbarrier || bulk->thread != t || bulk->group >= c->thread[t].bulk_group - pending) {
            ++i;
            continue;
        }
        copy_bytes(bulk->to, bulk->from, bulk->bytes);
        *bulk = c->bulk[--c->bulk_count];
    }
}
