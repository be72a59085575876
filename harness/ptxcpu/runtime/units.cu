// Runs blocks on the vector path: a unit of several threads is one coroutine. Thread u of the
// context stands for unit u.

const long long MAX_POLLS = 1ll << 23;  // some seconds
const long long PATIENCE = 1ll << 16;   // polls after which a worker counts as one that waits

// ---- cp.async: all lanes of a unit share its groups. t: the first thread of the unit

// One copy by each of some lanes; the targets of all lanes follow, then their sources.
struct UnitCopy {
    unsigned long long lanes, filled;  // the lanes that copy; those that copy the source, others zero
    int bytes;     // that each lane copies
    int together;  // neighbouring lanes that copy neighbouring bytes
    long long group;
};

__device__ UnitCopy* unit_copy(UnitCopies* all, long long lanes, long long number) {
    return (UnitCopy*)((char*)(all + 1) +
                       number % COPIES_IN_FLIGHT * (long long)(sizeof(UnitCopy) + 16 * lanes));
}

// Copies some words for each of eight lanes.
template <typename Word, int WORDS>
__device__ __forceinline__ void copy_eight(char** to, char** from) {
#pragma unroll
    for (int lane = 0; lane < 8; ++lane)
#pragma unroll
        for (int i = 0; i < WORDS; ++i) ((Word*)to[lane])[i] = ((const Word*)from[lane])[i];
}

__device__ void copy_lanes(UnitCopy* copy, long long lanes) {
    char** to = (char**)(copy + 1);
    char** from = to + lanes;
    if ((copy->lanes & copy->filled) == ~0ull >> (64 - lanes)) {
        if (copy->together > 1) {
            for (long long lane = 0; lane < lanes; lane += copy->together)
                copy_bytes(to[lane], from[lane], copy->together * copy->bytes);
            return;
        }
        for (long long lane = 0; lane < lanes; lane += 8) {
            if (copy->bytes == 4) copy_eight<unsigned, 1>(to + lane, from + lane);
            else if (copy->bytes == 8) copy_eight<unsigned long long, 1>(to + lane, from + lane);
            else copy_eight<unsigned long long, 2>(to + lane, from + lane);
        }
        return;
    }
    for (unsigned long long rest = copy->lanes; rest; rest &= rest - 1) {
        long long lane = __ffsll(rest) - 1;
        if (copy->filled >> lane & 1) copy_bytes(to[lane], from[lane], copy->bytes);
        else
            for (long long i = 0; i < copy->bytes; ++i) to[lane][i] = 0;
    }
}

// Sets the words of the cells that a copy writes, by lane.
__device__ void mark_lanes(const Context* c, const UnitCopy* copy, int first_word, int step) {
    char* const* to = (char* const*)(copy + 1);
    for (unsigned long long rest = copy->lanes; rest; rest &= rest - 1) {
        int lane = __ffsll(rest) - 1;
        mark_written(c->watch, to[lane] - c->shared, copy->bytes, first_word + lane * step);
    }
}

__device__ void deliver_lanes(Context* c, long long t, UnitCopy* copy, long long lanes) {
    copy_lanes(copy, lanes);
    if (c->watch) mark_lanes(c, copy, c->watch->now + (int)t, 1);
}

// Copies for which no thread waited do not arrive.
__device__ void forget_copies(Context* c, long long units) {
    long long lanes = c->threads / units;
    for (long long t = 0; t < c->threads; t += lanes) {
        UnitCopies* all = copies_of_unit(c, t);
        for (; all->delivered < all->issued; ++all->delivered)
            mark_lanes(c, unit_copy(all, lanes, all->delivered), 0, 0);
    }
}

// Begins a copy; returns where the targets and the sources of all lanes belong.
extern "C" __device__ char* rt_unit_copy(Context* c, long long t, long long lanes,
                                         unsigned long long active, unsigned long long filled,
                                         long long bytes, long long together) {
    UnitCopies* all = copies_of_unit(c, t);
    if (all->issued == all->delivered && !c->trackers_used) all->issued = all->delivered = 0;  // memory in the cache
    if (all->issued - all->delivered == COPIES_IN_FLIGHT) {  // room for one more
        deliver_lanes(c, t, unit_copy(all, lanes, all->delivered++), lanes);
        if (c->watch) c->watch->doubt = -1;
    }
    UnitCopy* copy = unit_copy(all, lanes, all->issued++);
    copy->lanes = active, copy->filled = filled, copy->group = all->group;
    copy->bytes = (int)bytes, copy->together = (int)together;
    return (char*)(copy + 1);
}

extern "C" __device__ void rt_unit_commit(Context* c, long long t, long long lanes) {
    copies_of_unit(c, t)->group += 1;
}

// Waits until at most `pending` committed groups are in flight; a negative number waits for all.
extern "C" __device__ void rt_unit_wait(Context* c, long long t, long long lanes, long long pending) {
    UnitCopies* all = copies_of_unit(c, t);
    long long end = pending < 0 ? 1ll << 62 : all->group - pending;
    for (; all->delivered < all->issued; ++all->delivered) {
        UnitCopy* copy = unit_copy(all, lanes, all->delivered);
        if (copy->group >= end) return;
        deliver_lanes(c, t, copy, lanes);
    }
}

// Delivers the copies of the unit that thread t begins, up to a number.
__device__ __noinline__ void deliver_of_unit(Context* c, long long t, long long end) {
    UnitCopies* all = copies_of_unit(c, t);
    for (; all->delivered < end; ++all->delivered)
        deliver_lanes(c, t, unit_copy(all, c->unit_lanes, all->delivered), c->unit_lanes);
}

// ---- blocks

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

// How many workers there are, and how many of them have ended or poll for what others may write.
struct Team {
    unsigned long long waiting;
    long long workers;
};

// Counts a block's rounds in which its units only poll. Returns whether they do so in vain: for too long, or
// while all other workers wait, too.
__device__ bool polls_in_vain(Team* team, long long polls) {
    if (polls == PATIENCE) atomicAdd(&team->waiting, 1ull);
    bool all_wait = *(volatile unsigned long long*)&team->waiting == team->workers;
    return polls > MAX_POLLS || (polls >= 2 * PATIENCE && all_wait);
}

__device__ void ends_polling(Team* team, long long polls) {
    if (polls >= PATIENCE) atomicAdd(&team->waiting, ~0ull);
}

// Runs one block, watched if its context has a Watch. Returns whether all units reached their end.
// If one did not, if none can continue, or if they poll in vain for a value that other lanes or later blocks
// may have to write, threads must run the block again. polls: receives the rounds in which they polled last
__device__ bool run_units(Context* c, long long units, bool backward, Team* team, long long* polls) {
    begin_block(c);
    c->fault = 0;
    c->unit_lanes = c->threads / units;
    for (long long u = 0; u < units; ++u) {
        c->thread[u].state = STATE_YIELD;
        UnitCopies* all = copies_of_unit(c, c->unit_lanes * u);
        all->issued = all->delivered = all->group = 0;
    }
    long long moving = units;
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
        if (opens) {
            ends_polling(team, *polls);
            *polls = 0;
        }
        if (*c->stop || (!opens && !moving) || (!opens && polls_in_vain(team, ++*polls))) return false;
        backward = !backward;
    }
}

// Takes blocks from the list, as rt_run does. left: receives a 1 for each block that threads must
// run. It leaves all other blocks to threads, too, if threads must run most blocks; if they must run
// the first one and blocks depend on one another; or if a watched access may be an error.
extern "C" __device__ void rt_run_units(Context* c, unsigned long long* next, const long long* blocks,
                                        long long count, long long units, long long depend,
                                        unsigned char* left, Team* team) {
    long long done = 0, given_up = 0;
    for (;;) {
        unsigned long long i = atomicAdd(next, 1ull);
        if (i >= count) {
            atomicAdd(&team->waiting, 1ull);
            return;
        }
        bool hopeless = given_up >= 4 && given_up > done, is_done = false;
        place_cluster(c, blocks[i]);
        if (!hopeless && !*c->stop) {
            if (c->watch) begin_watch(c);
            long long polls = 0;
            is_done = run_units(c, units, blocks[i] & 1, team, &polls) && !is_doubtful(c);
            ends_polling(team, polls);
            if (c->watch) {
                forget_copies(c, units);
                end_watch(c, is_done);
            }
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
