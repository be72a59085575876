// Counters of the memory system: sectors of global memory and wavefronts of shared memory, by
// instruction, as a multiprocessor counts them.

__device__ __noinline__ void sort(Address* x, int n) {
    for (int i = 1; i < n; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            Address swapped = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swapped;
        }
}

// The number of different segments of 1 << log2 bytes that the lanes access.
__device__ __noinline__ int pieces(const Address* address, unsigned here, int bytes, int log2) {
    Address touched[2 * LANES];
    int n = 0;
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) {
            touched[n++] = address[lane] >> log2;
            touched[n++] = (address[lane] + bytes - 1) >> log2;
        }
    sort(touched, n);
    int found = 0;
    for (int i = 0; i < n; ++i) found += i == 0 || touched[i] != touched[i - 1];
    return found;
}

// Returns how many different words some lanes access: in all of the 32 banks of shared memory, or in the
// bank that has most of them.
__device__ int count_words(const Address* address, unsigned lanes, int bytes, bool in_one_bank) {
    Address first = ~0ull, last = 0;
    int each = (bytes + 3) / 4, n = 0, found = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        Address row = address[lane] >> 7, end = (address[lane] >> 2) + each - 1 >> 5;
        first = row < first ? row : first;
        last = end > last ? end : last;
    }
    if (lanes && last - first < ROWS_OF_WORDS) {  // one bit for each word, row by row of all banks
        unsigned rows[ROWS_OF_WORDS];
        int count = (int)(last - first) + 1;
        for (int i = 0; i < count; ++i) rows[i] = 0;
        for (int lane = 0; lane < LANES; ++lane)
            for (int i = 0; (lanes >> lane & 1) && i < each; ++i) {
                Address word = (address[lane] >> 2) + i;
                rows[(word >> 5) - first] |= 1u << (word & 31);
            }
        if (!in_one_bank) {
            for (int i = 0; i < count; ++i) found += __popc(rows[i]);
            return found;
        }
        for (;; ++found) {
            unsigned banks = 0;
            for (int i = 0; i < count; ++i) {  // one word of each bank
                unsigned now = rows[i] & ~banks;
                banks |= now;
                rows[i] ^= now;
            }
            if (!banks) return found;
        }
    }
    Address words[4 * LANES];
    int in_bank[LANES];
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; (lanes >> lane & 1) && i < each; ++i) words[n++] = (address[lane] >> 2) + i;
    sort(words, n);
    for (int i = 0; i < LANES; ++i) in_bank[i] = 0;
    for (int i = 0; i < n; ++i) in_bank[words[i] % LANES] += i == 0 || words[i] != words[i - 1];
    for (int i = 0; i < LANES; ++i) found = !in_one_bank ? found + in_bank[i] : found < in_bank[i] ? in_bank[i] : found;
    return found;
}

__device__ __noinline__ int different_words(const Address* address, unsigned here, int bytes) {
    return count_words(address, here, bytes, false);
}

// Returns the passes over the banks for some lanes.
__device__ __noinline__ int passes(const Address* address, unsigned lanes, int bytes) {
    return count_words(address, lanes, bytes, true);
}

// Whether all lanes form pairs with equal addresses at distance 1 or 2, so that two phases become
// one.
__device__ bool paired(const Address* address, unsigned here, unsigned lanes) {
    for (int distance = 1; distance <= 2; ++distance) {
        bool all = true;
        for (int lane = 0; lane < LANES; ++lane)
            if ((lanes >> lane & 1) && (here >> lane & 1) && (here >> (lane ^ distance) & 1))
                all &= address[lane] == address[lane ^ distance];
        if (all) return true;
    }
    return false;
}

// 32-bit accesses take one phase, 64-bit two half warps, 128-bit four quarter warps; neighbouring
// phases merge when lanes pair up.
__device__ int wavefronts(const Address* address, unsigned here, int bytes) {
    if (bytes <= 4) return passes(address, here, bytes);
    int lanes = bytes == 8 ? 16 : 8, total = 0;
    for (int first = 0; first < LANES; first += 2 * lanes) {
        unsigned phase = (lanes == 16 ? 0xffffu : 0xffu) << first, next = phase << lanes;
        if (paired(address, here, phase | next)) total += passes(address, here & (phase | next), bytes);
        else total += passes(address, here & phase, bytes) + passes(address, here & next, bytes);
    }
    return total;
}

// Returns the fewest wavefronts of such a request: one for each phase, and enough for its words.
__device__ int min_wavefronts(const Address* address, unsigned here, int bytes) {
    int least = (different_words(address, here, bytes) + LANES - 1) / LANES, phases = 0;
    int lanes = bytes <= 4 ? LANES : bytes == 8 ? 16 : 8;
    for (int first = 0; first < LANES; first += 2 * lanes) {
        unsigned phase = lanes == LANES ? ~0u : (lanes == 16 ? 0xffffu : 0xffu) << first, next = lanes == LANES ? 0 : phase << lanes;
        bool apart = (here & phase) && (here & next) && !paired(address, here, phase | next);
        phases += apart ? 2 : (here & (phase | next)) != 0;
    }
    return least < phases ? phases : least;
}

// Sectors of the buffers that no thread of the block had accessed before.
__device__ int first_sectors(Context* c, const Address* address, unsigned here, int bytes) {
    long long window = window_of(address[__ffs(here) - 1]);
    unsigned* touched = c->counts->touched[window];
    unsigned now = (unsigned)c->block + 1;
    int found = 0;
    for (int lane = 0; touched && lane < LANES; ++lane) {
        if (!(here >> lane & 1)) continue;
        long long at = offset_in_window(address[lane]);
        if (at < 0 || at + bytes > c->windows[window].bytes) continue;
        for (long long sector = at >> 5; sector <= at + bytes - 1 >> 5; ++sector) {
            unsigned* last = touched + sector * c->cluster_blocks + c->rank;
            found += *last != now;
            *last = now;
        }
    }
    return found;
}

// Sectors that the warp has not accessed recently. Its table has the capacity of its share of an L1
// cache that serves eight blocks; each of its sets has the latest sector first.
__device__ int new_sectors(Context* c, const Address* address, unsigned here, int bytes) {
    int found = 0;
    for (int lane = 0; lane < LANES; ++lane)
        for (Address sector = address[lane] >> 5; here >> lane & 1 && sector <= address[lane] + bytes - 1 >> 5; ++sector) {
            unsigned set = (unsigned)sector * 2654435761u / (unsigned)(0x100000000 / RECENT_SETS);
            Address* way = c->counts->recent + (c->counts->warp * RECENT_SETS + set) * RECENT_WAYS;
            Address tag = (Address)(c->block + 1) << 42 | sector;
            int at = 0;
            while (at < RECENT_WAYS - 1 && way[at] != tag) ++at;
            found += way[at] != tag;
            for (; at > 0; --at) way[at] = way[at - 1];
            way[0] = tag;
        }
    return found;
}

__device__ void count_shared(Count* row, const Address* address, unsigned here, int bytes) {
    row->shared_requests += 1;
    row->wavefronts += wavefronts(address, here, bytes);
    row->min_wavefronts += min_wavefronts(address, here, bytes);
}

__device__ __noinline__ void count_global(Context* c, Count* row, const Address* address, unsigned here, int bytes, int sectors) {
    row->global_requests += 1;
    row->sectors += sectors;
    row->min_sectors += (different_words(address, here, bytes) + 7) / 8;
    row->first_sectors += first_sectors(c, address, here, bytes);
    row->new_sectors += new_sectors(c, address, here, bytes);
    row->global_passes += pieces(address, here, bytes, 7);
}

__device__ __noinline__ void count_access(Context* c, long long pc, const Address* address, unsigned here, int bytes) {
    Count* row = c->counts->rows + pc;
    long long window = window_of(address[__ffs(here) - 1]);
    if (window == WINDOW_LOCAL) return;
    if (window == WINDOW_SHARED) {
        count_shared(row, address, here, bytes);
        int place = c->counts->place[pc];
        for (int i = 0; place >= 0 && i < 2; ++i)
            count_shared(c->counts->wider + 2 * place + i, address, here, 8 << i);
    } else count_global(c, row, address, here, bytes, pieces(address, here, bytes, 5));
}

// ldmatrix and stmatrix: every 8x8 matrix is eight rows of 16 bytes, one wavefront at best.
__device__ void count_matrices(Context* c, long long pc, const Address* row, int matrices) {
    Count* count = c->counts->rows + pc;
    count->shared_requests += 1;
    for (int i = 0; i < matrices; ++i) {
        count->wavefronts += passes(row, 0xffu << 8 * i, 16);
        count->min_wavefronts += 1;
    }
}

// kind: bytes or matrices << 8 | event
__device__ void count_event(Context* c, long long pc, const Address* address, unsigned here, int kind) {
    Count* row = c->counts->rows + pc;
    unsigned taken = 0;
    switch (kind & 0xff) {
        case EVENT_ACCESS: count_access(c, pc, address, here, kind >> 8); break;
        case EVENT_TARGET: count_target(c, pc, address, here, kind >> 8); break;
        case EVENT_SOURCE: count_source(c, pc, address, here, kind >> 8, false); break;
        case EVENT_BYPASS: count_source(c, pc, address, here, kind >> 8, true); break;
        case EVENT_MATRIX: count_matrices(c, pc, address, kind >> 8); break;
        case EVENT_BLOCK:
            row->threads += __popc(here);
            row->warps += 1;
            break;
        case EVENT_BRANCH:
            for (int lane = 0; lane < LANES; ++lane)
                taken |= (here >> lane & 1) && address[lane] ? 1u << lane : 0;
            row->divergent += taken && taken != here;
            break;
    }
}

__device__ int* traced_of(Context* c, long long t) { return c->counts->traced + c->rank * c->threads + t; }

// Whether events of a cluster are not yet counted. c: of rank 0
__device__ bool has_traces(Context* c) {
    for (long long t = 0; t < c->cluster_blocks * c->threads; ++t)
        if (c->counts->traced[t]) return true;
    return false;
}

// The threads of a warp, next to each other. A thread uses only as much memory as it has events.
__device__ Traced* traced(Context* c, long long t, int i) {
    long long warps = (c->threads + LANES - 1) / LANES, warp = c->rank * warps + t / LANES;
    return c->counts->trace + (warp * TRACE + i) * LANES + t % LANES;
}

// The lanes of a warp ran one after the other, each until it had to wait. Their events are merged,
// the lowest program point first, so that diverged lanes reconverge. Events of lanes that are ahead
// of waiting ones are kept until the others reach that point, too.
__device__ __noinline__ void count_traces(Context* c, long long w) {
    long long first = LANES * w;
    c->counts->warp = c->rank * ((c->threads + LANES - 1) / LANES) + w;
    int lanes = c->threads - first < LANES ? (int)(c->threads - first) : LANES, next[LANES];
    int waiting = 0x7fffffff;
    for (int lane = 0; lane < lanes; ++lane) {
        Thread* thread = c->thread + first + lane;
        next[lane] = 0;
        if (thread->state == STATE_COLLECTIVE && thread->pc < waiting) waiting = thread->pc;
    }
    for (;;) {
        int order = 0x7fffffff, kind = 0;
        unsigned here = 0;
        Address address[LANES];
        for (int lane = 0; lane < lanes; ++lane) {
            if (next[lane] == *traced_of(c, first + lane)) continue;
            Traced* event = traced(c, first + lane, next[lane]);
            bool is_ahead = event->order > waiting && c->thread[first + lane].state != STATE_COLLECTIVE;
            if (event->order > order || is_ahead) continue;
            if (event->order < order) here = 0;
            order = event->order, kind = event->kind;
            here |= 1u << lane;
            address[lane] = event->address;
        }
        if (!here) break;
        count_event(c, order >> 2, address, here, kind);
        for (int lane = 0; lane < lanes; ++lane) next[lane] += here >> lane & 1;
    }
    for (int lane = 0; lane < lanes; ++lane) {
        int left = *traced_of(c, first + lane) - next[lane];
        for (int i = 0; i < left; ++i) *traced(c, first + lane, i) = *traced(c, first + lane, next[lane] + i);
        *traced_of(c, first + lane) = left;
    }
}

// order: instruction << 2 | the number of the event in it
extern "C" __device__ void rt_trace(Context* c, long long t, long long order, Address address, long long kind) {
    if (!c->counts) return;
    int* events = traced_of(c, t);
    if (*events == TRACE) {
        rt_fault(c, t, CAUSE_TRACE_OVERFLOW, order >> 2, 0, 0, 0);
        return;
    }
    Traced* event = traced(c, t, (*events)++);
    event->address = address;
    event->order = (int)order;
    event->kind = (int)kind;
}
