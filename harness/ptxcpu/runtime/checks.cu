// The checks record which bytes were written and which accesses conflict. The clocks (clocks.cu) say
// which of them are ordered. So a race is found whenever it is possible, not only when it happens.

// Returns the number of the block with this rank in the cluster that begins with the given block.
__device__ long long block_of_rank(Context* c, long long first, long long rank) {
    long long across = rank % c->cluster_x, down = rank / c->cluster_x % c->cluster_y;
    return first + across + c->grid_x * (down + c->grid_y * (rank / c->cluster_x / c->cluster_y));
}

// other: the other access; null if there is none
__device__ void note_of_block(Context* c, long long kind, long long pc, long long other_pc, long long thread,
                              long long other_thread, long long other_block, Address address, long long bytes,
                              int access, int other_access) {
    Checks* k = c->checks;
    History* h = k->history;
    unsigned place = ((unsigned)pc * 31 + (unsigned)other_pc) * 0x9e3779b1u + (unsigned)kind;
    for (;;) {  // an open hash table, which is never full
        int number = h->places[place >> 7 & FINDING_PLACES - 1];
        if (!number) break;
        Finding* f = h->findings + number - 1;
        if (f->kind == kind && f->pc == pc && f->other_pc == other_pc) {
            f->count += k->cells_checked;
            return;
        }
        place += 1 << 7;
    }
    if (h->found == h->capacity) return;
    h->places[place >> 7 & FINDING_PLACES - 1] = (int)h->found + 1;
    Finding* f = h->findings + h->found++;
    f->kind = kind; f->pc = pc; f->other_pc = other_pc;
    f->thread = thread; f->other_thread = other_thread < 0 ? -1 : other_thread % c->threads;
    f->block = c->block; f->other_block = other_block;
    f->address = address; f->bytes = bytes; f->access = access; f->other_access = other_access;
    f->count = k->cells_checked;
}

// other_thread: counted through the cluster; -1 if there is none.
__device__ __noinline__ void note(Context* c, long long kind, long long pc, long long other_pc, long long thread,
                     long long other_thread, Address address, long long bytes, int access,
                     int other_access) {
    long long other_block = c->cluster[other_thread < 0 ? c->rank : other_thread / c->threads].block;
    note_of_block(c, kind, pc, other_pc, thread, other_thread, other_block, address, bytes, access, other_access);
}

// The number for reads by products of a warp's later groups, or of one not yet committed.
__device__ bool may_still_read(const Event* e) { return (e->access & (ACCESS_ASYNC | ACCESS_WRITE)) == ACCESS_ASYNC; }

// other: the earlier access, perhaps of another cluster
__device__ void note_pair(Context* c, long long kind, long long t, long long pc, Address address,
                          long long n, int access, const Event* other) {
    long long run = run_of(c, other->clock);
    bool is_near = may_still_read(other) || is_of_this_cluster(c, other);
    long long first = is_near ? c->cluster->block : c->checks->history->runs[run].block;
    long long block = block_of_rank(c, first, other->thread / c->threads);
    note_of_block(c, kind, pc, other->pc, t, other->thread, block, address, n, access, other->access);
}

__device__ void note_bad_access(Context* c, long long t, long long pc, Address address, long long n,
                                int access) {
    note(c, FINDING_KIND_BAD_ACCESS, pc, -1, t, -1, address, n, access, 0);
}


// A block's shared memory has wide cells, followed by narrow ones. A wide cell describes its
// bytes until an access covers only some of them: then it is divided, for the rest of the run.
__device__ long long wide_cells(Context* c) { return (c->shared_bytes + WIDE_CELL - 1) / WIDE_CELL; }

__device__ long long narrow_cells_in_wide(Checks* k) { return cell_of(WIDE_CELL, k->cell_width); }

__device__ ShadowCell* cells_of(Context* block) { return block->checks->cells + block->rank * block->checks->block_cells; }

// What is known of few cells; it counts if the cell says so.
__device__ RareCell* rare_of(Context* block, long long cell) { return block->checks->rare + block->rank * block->checks->block_cells + cell; }

// Forgets what earlier runs have noted in a cell.
__device__ __forceinline__ void begin_cell(Checks* k, ShadowCell* cell) {
    if (cell->run == (int)k->run) return;
    cell->run = (int)k->run;
    cell->readers = cell->last_read = cell->awaited = 0;
}

// The same as rare_of; from now on it counts. It is empty unless it has counted before.
__device__ RareCell* begin_rare(Context* block, long long cell) {
    begin_cell(block->checks, cells_of(block) + cell);
    RareCell* rare = rare_of(block, cell);
    if (!(cells_of(block)[cell].readers & IS_RARE))
        rare->strong.clock = rare->other_strong.clock = rare->in_flight.clock = 0;
    cells_of(block)[cell].readers |= IS_RARE;
    return rare;
}

__device__ bool is_rare(Checks* k, const ShadowCell* cell) { return cell->run == (int)k->run && cell->readers & IS_RARE; }

__device__ unsigned char* local_ready(Context* c, long long t) {
    return c->checks->local_ready + number_of(c, t) * c->local_bytes;
}

// c: of rank 0
__device__ __noinline__ void begin_checks(Context* c) {
    Checks* k = c->checks;
    long long n = threads_of_cluster(c);
    for (long long b = 0; b < c->cluster_blocks; ++b)
        for (long long w = 0; w < k->warps / c->cluster_blocks; ++w) check_products(c + b, w, 0xffffffff);
    begin_clocks(c);
    for (long long t = 0; t < n; ++t)
        copy_bytes((char*)local_ready(c, t), (const char*)k->local_fresh, c->local_bytes);
    for (long long b = 0; b < c->cluster_blocks; ++b)
        for (int barrier = 0; barrier < NAMED_BARRIERS; ++barrier) forget(c, arrival_at(c + b, barrier));
    for (long long b = 0; b < c->cluster_blocks; ++b)
        copy_bytes((char*)k->shared_ready + b * c->shared_bytes, (const char*)k->shared_fresh, c->shared_bytes);
    if (c->cluster_blocks > 1) begin_cluster_checks(c);
}

// ---- accesses

// The distance of thread t from the thread of an earlier event: same block, same cluster, or
// neither.
__device__ int distance_to(Context* c, const Event* other) {
    if (!is_of_this_cluster(c, other)) return OTHER_CLUSTER;
    return other->thread / c->threads == c->rank ? SAME_BLOCK : SAME_CLUSTER;
}

__device__ bool is_weak(int access) { return !(access & (ACCESS_ATOMIC | ACCESS_STRONG)); }

// Returns whether two accesses are morally strong: strong, with scopes that include both threads.
__device__ bool both_strong(Context* c, int access, const Event* other) {
    const int STRONG = ACCESS_ATOMIC | ACCESS_STRONG;
    if (!(access & STRONG) || !(other->access & STRONG)) return false;
    int distance = distance_to(c, other);
    return reach_of(access) >= distance && reach_of(other->access) >= distance;
}

__device__ __noinline__ void conflict(Context* c, long long t, long long pc, Address address, long long n,
                         int access, Event* other) {
    if (other->clock == 0 || (!may_still_read(other) && ordered(c, t, other))) return;
    if (!may_still_read(other) && both_strong(c, access, other)) return;
    if ((other->access & ACCESS_INIT) && init_is_known(c, t, other)) return;
    note_pair(c, FINDING_KIND_RACE, t, pc, address, n, access, other);
}

__device__ void record(Context* c, Event* e, long long t, long long pc, int access) {
    e->clock = *own_clock(c, t);
    e->pc = (int)pc;
    e->thread = (short)number_of(c, t);
    e->access = (short)access;
}

// Returns whether a strong write tells its thread of those before it.
__device__ bool observes(int access) { return (access & (ACCESS_ATOMIC | ACCESS_RESULT_UNUSED)) == ACCESS_ATOMIC; }

// Whether `other` of record_strong is a read.
__device__ bool is_observer(const Event* other) { return other->clock && !(other->access & ACCESS_WRITE); }

// Returns the distance of thread t from an earlier event; less than SAME_BLOCK in the same warp.
__device__ int separation(Context* c, long long t, const Event* e) {
    int distance = distance_to(c, e);
    return distance == SAME_BLOCK && e->thread % c->threads / LANES == t / LANES ? -1 : distance;
}

// Strong writes do not conflict with each other, but each of them may with a weak access. In PTX a strong write
// comes before a weak access if it does in base causality order, or if a strong access that does has observed
// it: has read its value, or that of a later atomic operation. (So a thread that draws the last ticket, or has
// polled a counter, may reset it.) Therefore the last strong write stands for all before it if it observes them.
// If nothing uses its result, it might have come before the others. Then `other` is one of those that are not
// ordered before it, the one from farthest away. After a strong read, `other` is that read, which has observed
// all. The writes that it replaces are forgotten, for other threads, too: better to miss a rare race than to
// refuse a correct kernel.
__device__ void record_strong(Context* c, Event* last, Event* other, long long t, long long pc, int access) {
    if (!(access & ACCESS_WRITE)) {
        if (both_strong(c, access, last)) record(c, other, t, pc, access);
        return;
    }
    if (observes(access) || is_observer(other)) other->clock = 0;
    else if (last->clock && !ordered(c, t, last)) {
        bool is_kept = other->clock && separation(c, t, other) > separation(c, t, last) && !ordered(c, t, other);
        if (!is_kept) *other = *last;
    }
    record(c, last, t, pc, access);
}

// Reports conflicts with strong writes. What was observed counts for weak accesses only: a strong one whose scope
// is too narrow is reported, because the clocks let it pass on what others have released.
__device__ void conflict_with_strong(Context* c, long long t, long long pc, Address address, long long n, int access,
                                     Event* last, Event* other) {
    if (is_weak(access) && is_observer(other) && ordered(c, t, other)) return;
    conflict(c, t, pc, address, n, access, last);
    if (!is_observer(other)) conflict(c, t, pc, address, n, access, other);
}

// ---- products in flight: until a wait for their group, reads of wgmma have the number of the
// group as their clock, and no other synchronisation orders them

__device__ long long warp_of_cluster(Context* c, long long w) { return c->rank ? c->rank * (c->checks->warps / c->cluster_blocks) + w : w; }

__device__ __forceinline__ long long place_of_reads(Context* block, long long warp, long long cell) {
    return (block->rank * block->checks->warps + warp) * block->checks->block_cells + cell;
}

// The last read of a cell of a block's shared memory by a warp of the cluster.
__device__ __forceinline__ Event* read_of(Context* block, long long warp, long long cell) {
    return block->checks->reads + place_of_reads(block, warp, cell);
}

// The last one by another lane of that warp; null if there is none.
__device__ __forceinline__ Event* second_read_of(Context* block, long long warp, long long cell) {
    long long place = place_of_reads(block, warp, cell);
    return block->checks->reads[place].access & ACCESS_SECOND ? block->checks->second_reads + place : 0;
}

// Goes through the reads of a cell by the warps that have read it since the last write that was after
// all reads.
struct ReadsOfCell {
    Context* block;
    long long cell, warp;
    unsigned left;
    Event* second;

    __device__ __forceinline__ ReadsOfCell(Context* block, long long cell) : block(block), cell(cell), warp(block->checks->warps), second(0) {
        const ShadowCell* s = cells_of(block) + cell;
        left = s->run == (int)block->checks->run ? s->readers & ~IS_RARE : 0;
    }

    __device__ __forceinline__ Event* next() {
        if (second) {
            Event* e = second;
            second = 0;
            return e;
        }
        warp += READERS;
        if (warp >= block->checks->warps) {
            if (!left) return 0;
            warp = __ffs(left) - 1;
            left &= left - 1;
        }
        second = second_read_of(block, warp, cell);
        return read_of(block, warp, cell);
    }
};

__device__ int* awaited_by(Context* c, long long warp) { return c->checks->awaited + warp * c->checks->block_cells; }

// Whether products of a warp may still read a cell.
__device__ bool is_awaited(Context* block, long long warp, long long cell) {
    const Event* second = second_read_of(block, warp, cell);
    return may_still_read(read_of(block, warp, cell)) || (second && may_still_read(second));
}

// Records a cell that the warp's products may still read.
__device__ void await_products(Context* c, long long warp, long long g) {
    awaited_by(c, warp)[c->checks->awaited_cells[warp]++] = (int)g;
    cells_of(c)[g].awaited += 1;
}

// Returns whether no read of a cell conflicts with a write, by their latest clock alone.
__device__ __forceinline__ bool have_settled(const Checks* k, const ShadowCell* cell) {
    return !cell->awaited && cell->last_read <= (unsigned)k->settled;
}

// Whether all threads that can make an access know of an earlier one, so that no later one conflicts
// with it.
__device__ __forceinline__ bool is_settled(Context* block, const Event* e) {
    if (may_still_read(e)) return false;
    return e->clock <= (unsigned)block->checks->settled || (block->cluster_blocks == 1 && floor_of(block)[e->thread] >= e->clock);
}

// Returns the same of all reads of a cell.
__device__ bool are_settled(Context* block, long long cell) {
    if (have_settled(block->checks, cells_of(block) + cell)) return true;
    for (ReadsOfCell all(block, cell); const Event* read = all.next();)
        if (!is_settled(block, read)) return false;
    return true;
}

// Copies what is known of a wide cell to the narrow cells of its bytes.
__device__ void divide(Context* block, long long wide) {
    Checks* k = block->checks;
    ShadowCell* cells = cells_of(block);
    long long count = narrow_cells_in_wide(k), first = wide_cells(block) + wide * count;
    begin_cell(k, cells + wide);
    for (long long i = first; i < first + count; ++i) {
        cells[i] = cells[wide];
        cells[i].awaited = 0;
        if (is_rare(k, cells + wide)) *rare_of(block, i) = *rare_of(block, wide);
    }
    bool is_read = cells[wide].readers & ~IS_RARE && !are_settled(block, wide);
    for (long long i = first; !is_read && i < first + count; ++i) cells[i].readers &= IS_RARE;
    cells[wide].readers = DIVIDED;
    if (!is_read) return;
    for (long long w = 0; w < k->warps; ++w) {
        const Event* second = second_read_of(block, w, wide);
        for (long long i = first; i < first + count; ++i) {
            *read_of(block, w, i) = *read_of(block, w, wide);
            if (second) *second_read_of(block, w, i) = *second;
            if (is_awaited(block, w, i)) await_products(block, w, i);
        }
    }
}

__device__ __forceinline__ bool is_divided(Context* block, long long wide) {
    const ShadowCell* cell = cells_of(block) + wide;
    return cell->run == (int)block->checks->run && cell->readers == DIVIDED;
}

// Returns the cell of a byte of an access that ends before `end`, and advances to the cell after it.
__device__ long long next_cell(Context* block, long long* byte, long long end) {
    Checks* k = block->checks;
    long long first = *byte, wide = first / WIDE_CELL, width = k->cell_width;
    if (!is_divided(block, wide)) {
        if (first % WIDE_CELL == 0 && first + WIDE_CELL <= end) {
            *byte = first + WIDE_CELL;
            k->cells_checked = narrow_cells_in_wide(k);
            return wide;
        }
        divide(block, wide);
    }
    *byte = (first & ~(width - 1)) + width;
    k->cells_checked = 1;
    return wide_cells(block) + cell_of(first, width);
}

// A read by one of these groups is an ordinary one from now on.
__device__ void complete(Checks* k, ShadowCell* cell, Event* read, long long waited_for) {
    if (!may_still_read(read) || read->clock > waited_for) return;
    read->access &= ~ACCESS_ASYNC;
    read->clock = k->own[read->thread];
    if (cell->last_read < read->clock) cell->last_read = read->clock;
}

// All groups up to this one are complete.
__device__ void check_products(Context* c, long long w, long long waited_for) {
    Checks* k = c->checks;
    long long warp = warp_of_cluster(c, w), left = 0;
    int* awaited = awaited_by(c, warp);
    for (long long i = 0; i < k->awaited_cells[warp]; ++i) {
        ShadowCell* cell = cells_of(c) + awaited[i];
        complete(k, cell, read_of(c, warp, awaited[i]), waited_for);
        if (Event* second = second_read_of(c, warp, awaited[i])) complete(k, cell, second, waited_for);
        if (is_awaited(c, warp, awaited[i])) awaited[left++] = awaited[i];
        else cell->awaited -= 1;
    }
    k->awaited_cells[warp] = (int)left;
}

// At the end of a block, all four warps of a warpgroup must have issued equally many products.
__device__ __noinline__ void check_warpgroups(Context* c) {
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

// Reports a read of shared memory by the asynchronous proxy of what an ordinary store wrote, unless
// a proxy fence is on the way. CUTLASS lets wgmma read what cp.async wrote without such a fence, so
// writes of copies need none. It has none between reads and the bulk copies that overwrite what was
// read, so writes by the asynchronous proxy are not checked.
__device__ void check_proxy(Context* c, long long t, long long pc, Address address, long long n, int access,
                            const Event* write) {
    if (write->clock <= c->checks->base || write->access & ACCESS_PROXY || !ordered(c, t, write)) return;
    if (!passed_proxy_fence(c, t, write)) note_pair(c, FINDING_KIND_NO_PROXY_FENCE, t, pc, address, n, access, write);
}

// Returns whether an earlier access to shared memory is certainly no conflict with one of the thread
// of this number. Those of earlier clusters are none. known: the thread's clock
__device__ __forceinline__ bool is_over(const Event* e, unsigned settled, const unsigned* known, long long number) {
    return !may_still_read(e) && (e->clock <= settled || e->thread == number || known[e->thread] >= e->clock);
}

// Returns the same of all reads of a cell.
__device__ __noinline__ bool are_over(Context* block, long long g, const unsigned* known, long long number) {
    unsigned settled = (unsigned)block->checks->settled;
    for (ReadsOfCell all(block, g); const Event* read = all.next();)
        if (!is_over(read, settled, known, number)) return false;
    return true;
}

// Returns whether an access to a cell of a block is certainly no mistake.
__device__ __forceinline__ bool is_in_order(Context* c, long long t, int access, Context* block, long long g,
                                            const unsigned* known, long long number) {
    Checks* k = c->checks;
    const ShadowCell* cell = cells_of(block) + g;
    unsigned base = (unsigned)k->base;
    const Event* write = &cell->write;
    if (is_rare(k, cell)) {
        const RareCell* rare = rare_of(block, g);
        if (rare->in_flight.clock > base || rare->strong.clock > base) return false;
    }
    if (!is_over(write, (unsigned)k->settled, known, number)) return false;
    if (access & ACCESS_PROXY && write->clock > base && !(write->access & ACCESS_PROXY)) return passed_proxy_fence(c, t, write);
    return !(access & ACCESS_WRITE) || have_settled(k, cell) || are_over(block, g, known, number);
}

// Reports what is wrong with an access to a cell.
__device__ __noinline__ void note_conflicts(Context* c, long long t, long long pc, Address address, long long n,
                                            int access, Context* block, long long g) {
    Checks* k = c->checks;
    ShadowCell* cell = cells_of(block) + g;
    RareCell* rare = is_rare(k, cell) ? rare_of(block, g) : 0;
    bool reads_by_proxy = access & ACCESS_PROXY && !(access & ACCESS_WRITE);
    if (rare && rare->in_flight.clock > k->base)
        note(c, FINDING_KIND_IN_FLIGHT, pc, rare->in_flight.pc, t, rare->in_flight.thread, address, n, access,
             rare->in_flight.access);
    conflict(c, t, pc, address, n, access, &cell->write);
    if (reads_by_proxy) check_proxy(c, t, pc, address, n, access, &cell->write);
    if (rare) {
        conflict_with_strong(c, t, pc, address, n, access, &rare->strong, &rare->other_strong);
        if (reads_by_proxy) check_proxy(c, t, pc, address, n, access, &rare->strong);
    }
    if (access & ACCESS_WRITE)
        for (ReadsOfCell all(block, g); Event* read = all.next();) conflict(c, t, pc, address, n, access, read);
}

__device__ __forceinline__ void record_read_of_cell(Context* c, long long t, long long pc, int access, Context* block,
                                                    long long warp, long long g) {
    Checks* k = c->checks;
    ShadowCell* cell = cells_of(block) + g;
    Event* mine = read_of(block, warp, g);
    begin_cell(k, cell);
    if (access & ACCESS_ASYNC && !is_awaited(block, warp, g)) await_products(c, warp, g);
    cell->readers |= 1u << warp % READERS;
    bool is_of_this_run = mine->clock > k->base || may_still_read(mine);
    int second = is_of_this_run ? mine->access & ACCESS_SECOND : 0;
    bool is_own = is_of_this_run && mine->thread == number_of(c, t);
    if (is_own && is_weak(mine->access) && !is_weak(access) && !second) {
        // A strong write is a conflict with the weak read only, so that read is kept.
        if (mine->clock == *own_clock(c, t) && !(mine->access & ACCESS_ASYNC)) return;
        is_own = false;
    }
    if (!is_own) {
        second = is_of_this_run ? ACCESS_SECOND : 0;
        if (second) k->second_reads[place_of_reads(block, warp, g)] = *mine;
    }
    record(c, mine, t, pc, access | second);
    if (cell->last_read < mine->clock) cell->last_read = mine->clock;
    if (access & ACCESS_ASYNC) mine->clock = c->thread[t / LANES * LANES].products + 1;
}

// Makes a divided cell whole if all that is known of its parts is settled, or if a weak write of thread
// t will replace it.
__device__ __noinline__ void unite(Context* c, long long t, int access, Context* block, long long wide) {
    Checks* k = c->checks;
    long long count = narrow_cells_in_wide(k), first = wide_cells(block) + wide * count, number = number_of(c, t);
    const unsigned *known = known_to(c, t), *floor = floor_of(block);
    bool by_proxy = clock_words(c) >= fenced_numbers(c) + threads_of_cluster(c);
    ShadowCell *cells = cells_of(block), *last = cells + first;
    for (ShadowCell* cell = last; cell < cells + first + count; ++cell) {
        const Event* write = &cell->write;
        if (access & ACCESS_WRITE) {
            if (!is_in_order(c, t, access, block, cell - cells, known, number)) return;
            continue;
        }
        if (is_rare(k, cell) || !is_settled(block, write) || !are_settled(block, cell - cells)) return;
        bool needs_fence = by_proxy && write->clock > (unsigned)k->base && !(write->access & ACCESS_PROXY);
        if (needs_fence && floor[fenced_numbers(c) + write->thread] < write->clock) return;
        if (write->clock > last->write.clock) last = cell;
    }
    cells[wide].write = last->write;
    cells[wide].readers = cells[wide].last_read = 0;
}

__device__ void check_shared(Context* c, long long t, long long pc, Context* block, Address address,
                             long long n, int access) {
    Checks* k = c->checks;
    long long first = offset_in_block(address), number = number_of(c, t);
    long long warp = warp_of_cluster(c, t / LANES);
    const unsigned* known = known_to(c, t);
    for (long long byte = first; byte < first + n;) {
        bool is_whole = byte % WIDE_CELL == 0 && byte + WIDE_CELL <= first + n && is_weak(access);
        if (is_whole && is_divided(block, byte / WIDE_CELL)) unite(c, t, access, block, byte / WIDE_CELL);
        long long g = next_cell(block, &byte, first + n);
        ShadowCell* cell = cells_of(block) + g;
        bool in_order = is_in_order(c, t, access, block, g, known, number);
        if (!in_order) note_conflicts(c, t, pc, address, n, access, block, g);
        if (access & ACCESS_WRITE) {
            if (in_order && is_weak(access)) cell->readers = cell->last_read = 0;
            // A weak write is kept: later strong writes of the same thread do not replace it.
            if (is_weak(access)) record(c, &cell->write, t, pc, access);
            else record_strong(c, &begin_rare(block, g)->strong, &rare_of(block, g)->other_strong, t, pc, access);
            if (access & ACCESS_ASYNC) record(c, &begin_rare(block, g)->in_flight, t, pc, access);
        } else {
            if (!is_weak(access) && is_rare(k, cell))
                record_strong(c, &rare_of(block, g)->strong, &rare_of(block, g)->other_strong, t, pc, access);
            record_read_of_cell(c, t, pc, access, block, warp, g);
        }
    }
    k->cells_checked = 1;
}

// Returns whether n bytes, a multiple of four, were all written. It compares several flags at once.
__device__ __forceinline__ bool are_written(const unsigned char* ready, long long n) {
    const unsigned long long EIGHT = BYTE_WRITTEN * 0x0101010101010101ull;
    if (n & 3) return false;
    bool all = true;
    for (long long i = 0; i + 8 <= n; i += 8) all &= *(const unsigned long long*)(ready + i) == EIGHT;
    return all && (!(n & 4) || *(const unsigned*)(ready + n - 4) == (unsigned)EIGHT);
}

// Records an ordinary access to the block's own shared memory that is certainly no mistake, and returns the
// host address of its bytes. Returns null if more functions must examine it; they may record the same again.
__device__ __noinline__ char* access_in_order(Context* c, long long t, long long pc, Address address, long long n,
                                              bool is_write) {
    Checks* k = c->checks;
    long long first = (long long)(address - shared_begin(c));
    if (first < 0 || first > c->shared_bytes - n || first & (n - 1)) return 0;
    if (!are_written(k->shared_ready + c->rank * c->shared_bytes + first, n)) return 0;
    long long wide = first / WIDE_CELL, g = wide, count = 1;
    long long number = number_of(c, t), warp = warp_of_cluster(c, t / LANES);
    bool divided = is_divided(c, wide);
    if (divided == (n >= WIDE_CELL)) return 0;  // the cell has to be divided or united
    if (divided) g = wide_cells(c) + cell_of(first, k->cell_width), count = cell_of(n, k->cell_width);
    unsigned own = k->own[number], base = (unsigned)k->base, settled = (unsigned)k->settled;
    const unsigned* known = known_to(c, t);
    Event* reads = read_of(c, warp, 0);
    k->unmet = 1;
    for (ShadowCell* cell = cells_of(c) + g; count > 0; ++cell, ++g, --count) {
        begin_cell(k, cell);
        if (cell->readers & IS_RARE || !is_over(&cell->write, settled, known, number)) return 0;
        if (is_write) {
            if (!have_settled(k, cell) && !are_over(c, g, known, number)) return 0;
            cell->readers = cell->last_read = 0;
            cell->write = {own, (int)pc, (short)number, ACCESS_WRITE};
            continue;
        }
        Event* mine = reads + g;
        if (may_still_read(mine)) return 0;
        int second = mine->clock > base ? mine->access & ACCESS_SECOND : 0;
        if (mine->clock > base && mine->thread != number) {
            second = ACCESS_SECOND;
            k->second_reads[mine - k->reads] = *mine;
        }
        cell->readers |= 1u << (warp < READERS ? warp : warp % READERS);
        if (cell->last_read < own) cell->last_read = own;
        *mine = {own, (int)pc, (short)number, (short)(ACCESS_READ | second)};
    }
    return c->shared + first;
}

// What the reads of shared memory by one product of a warp have in common.
struct ProductReads {
    Context* c;
    ShadowCell* cells;
    Event* reads;
    const unsigned char *ready, *has_common;  // has_common, rows: from the warp's first lane on
    const unsigned *common, *rows;
    long long warp, thread, number, pc, words, fenced;
    unsigned group, base;
    int run;
};

// c->checks is not null
__device__ __noinline__ void begin_product_reads(ProductReads* r, Context* c, long long w, long long pc) {
    Checks* k = c->checks;
    k->unmet = 1;
    r->c = c;
    r->warp = warp_of_cluster(c, w);
    r->cells = cells_of(c);
    r->reads = read_of(c, r->warp, 0);
    r->ready = k->shared_ready + c->rank * c->shared_bytes;
    r->thread = w * LANES;
    r->number = number_of(c, r->thread);
    r->pc = pc;
    r->group = c->thread[w * LANES].products + 1;
    r->has_common = k->has_common + r->number;
    r->common = common_of(c);
    r->rows = row_of(c, r->thread);
    r->words = clock_words(c);
    r->fenced = fenced_numbers(c);
    r->base = (unsigned)k->base;
    r->run = (int)k->run;
}

// Records that a lane reads 16 bytes of its block's shared memory. Returns false, and has recorded
// nothing, if the read may be a mistake, or if there is more to record than this read.
__device__ __forceinline__ bool records_product_read(const ProductReads& r, int lane, unsigned at) {
    const unsigned long long WRITTEN = BYTE_WRITTEN * 0x0101010101010101ull;
    const unsigned long long* ready = (const unsigned long long*)(r.ready + at);
    ShadowCell* cell = r.cells + at / WIDE_CELL;
    Event* mine = r.reads + at / WIDE_CELL;
    const Event* write = &cell->write;
    int number = (int)r.number + lane;
    begin_cell(r.c->checks, cell);
    if (cell->readers & (IS_RARE | DIVIDED) || ready[0] != WRITTEN || ready[1] != WRITTEN) return false;
    if (write->clock > r.base) {
        const unsigned* known = r.has_common[lane] ? r.common : r.rows + lane * r.words;
        if (write->thread != number && known[write->thread] < write->clock) return false;
        if (!(write->access & ACCESS_PROXY) && known[r.fenced + write->thread] < write->clock) return false;
    }
    bool is_awaited = may_still_read(mine);
    if (mine->access & ACCESS_SECOND || (mine->thread != number && (is_awaited || mine->clock > r.base))) return false;
    if (!is_awaited) await_products(r.c, r.warp, at / WIDE_CELL);
    cell->readers |= 1u << r.warp % READERS;
    mine->clock = r.group;
    mine->pc = (int)r.pc;
    mine->thread = (short)number;
    mine->access = ACCESS_READ | ACCESS_ASYNC | ACCESS_PROXY;
    return true;
}

// ---- memory that all blocks share

// Memory has lines of one or two parts. A line describes its bytes as long as neighbouring lanes access
// all of a part, in order. (Rows of a matrix need two parts if they do not begin at a line.) The first other
// access copies what is known to cells, which are as wide as the kernel's narrowest access.
__device__ __noinline__ void divide_line(Checks* k, long long window, long long number) {
    GlobalLine* line = k->global_lines[window] + number;
    long long width = k->global_cell_width, begin = number * GLOBAL_LINE;
    GlobalCell* cells = k->global_cells[window] + cell_of(begin, width);
    for (int at = 0; line->lane_bytes && at < GLOBAL_LINE; at += (int)width, ++cells) {
        const LinePart* part = at < line->seam ? &line->head : &line->tail;
        int lane = (at < line->seam ? at : at - line->seam) / line->lane_bytes;
        cells->write = of_lane(&part->write, lane);
        cells->read = of_lane(&part->read, lane);
        cells->other_read = of_lane(&part->other_read, lane);
    }
    line->lane_bytes = IN_CELLS;
}

// Divides the lines of some bytes, so that their cells say what is known.
__device__ __forceinline__ void use_cells(Checks* k, long long window, long long first, long long n) {
    for (long long line = first / GLOBAL_LINE; line <= (first + n - 1) / GLOBAL_LINE; ++line)
        if (k->global_lines[window][line].lane_bytes != IN_CELLS) divide_line(k, window, line);
}

// Two unordered reads are both kept, and so are a weak one and a strong one after it, which strong writes
// do not conflict with. A third one replaces the older.
__device__ void record_read(Context* c, GlobalCell* cell, long long t, long long pc, int access) {
    Event* last = &cell->read;
    bool stands_for_last = is_weak(access) || !is_weak(last->access);
    access |= last->access & ACCESS_READ_ONLY;
    if (last->clock && !(stands_for_last && ordered(c, t, last))) cell->other_read = *last;
    record(c, last, t, pc, access);
}

__device__ __noinline__ void check_global(Context* c, long long t, long long pc, Address address, long long n, int access) {
    Checks* k = c->checks;
    long long window = window_of(address), first = offset_in_window(address);
    GlobalCell* cells = k->global_cells[window];
    if (!cells || first + n > k->global_bytes[window]) return;
    use_cells(k, window, first, n);
    long long last = cell_of(first + n - 1, k->global_cell_width);
    for (long long g = cell_of(first, k->global_cell_width); g <= last; ++g) {
        GlobalCell* cell = cells + g;
        Event* written = cell->write.clock ? &cell->write : &cell->strong;
        if (access & ACCESS_READ_ONLY && written->clock) {
            note_pair(c, FINDING_KIND_READ_ONLY_PATH, t, pc, address, n, access, written);
            continue;
        }
        if (cell->write.clock) conflict(c, t, pc, address, n, access, &cell->write);
        if (cell->strong.clock) conflict_with_strong(c, t, pc, address, n, access, &cell->strong, &cell->other_strong);
        if (!(access & ACCESS_WRITE)) {
            if (!is_weak(access)) record_strong(c, &cell->strong, &cell->other_strong, t, pc, access);
            record_read(c, cell, t, pc, access);
            continue;
        }
        if (cell->read.access & ACCESS_READ_ONLY)
            note_pair(c, FINDING_KIND_READ_ONLY_PATH, t, pc, address, n, access, &cell->read);
        else conflict(c, t, pc, address, n, access, &cell->read);
        conflict(c, t, pc, address, n, access, &cell->other_read);
        if (is_weak(access)) record(c, &cell->write, t, pc, access);
        else record_strong(c, &cell->strong, &cell->other_strong, t, pc, access);
    }
}

// Returns the flags that say whether the bytes at an address were written; null if there are none.
__device__ __noinline__ unsigned char* ready_flags(Context* c, long long t, Address address) {
    Checks* k = c->checks;
    long long window = window_of(address), offset = offset_in_window(address);
    if (window == WINDOW_SHARED)
        return k->shared_ready + block_at(c, address)->rank * c->shared_bytes + offset_in_block(address);
    if (window == WINDOW_LOCAL) return local_ready(c, t) + offset;
    if (window == WINDOW_MODULE) return k->module_ready ? k->module_ready + offset : 0;
    if (window < WINDOW_BUFFER || !k->buffer_ready[window]) return 0;
    return k->buffer_ready[window] + offset;
}

// Returns whether an access to memory of the block or the thread meets a word that was written.
__device__ __noinline__ bool is_partly_written(Address address, const unsigned char* ready, long long n) {
    long long window = window_of(address);
    if (window != WINDOW_SHARED && window != WINDOW_LOCAL) return false;
    bool any = false;
    for (long long i = 0; i + 4 <= n; i += 4) any |= are_written(ready + i, 4);
    return any;
}

__device__ void check_access(Context* c, long long t, long long pc, Address address, long long n,
                             int access) {
    c->checks->unmet = 1;
    unsigned char* ready = ready_flags(c, t, address);
    bool reads = !(access & ACCESS_WRITE) || (access & ACCESS_ATOMIC), outside = false, unwritten = false;
    bool all_written = !ready || are_written(ready, n);
    for (long long i = 0; !all_written && i < n; ++i) {
        outside |= ready[i] == BYTE_OUTSIDE;
        unwritten |= ready[i] == BYTE_UNWRITTEN;
        if (!reads && !(access & ACCESS_ASYNC) && ready[i] == BYTE_UNWRITTEN) ready[i] = BYTE_WRITTEN;
    }
    if (outside) note_bad_access(c, t, pc, address, n, access);
    else if (reads && unwritten) {
        int kind = is_partly_written(address, ready, n) ? FINDING_KIND_PARTLY_UNINITIALISED
                                                        : FINDING_KIND_UNINITIALISED;
        note(c, kind, pc, -1, t, -1, address, n, access, 0);
    }
    if (window_of(address) == WINDOW_SHARED) {
        Context* block = block_at(c, address);
        check_shared(c, t, pc, block, address, n, access);
        if (block != c) check_visit(c, t, pc, address, n, access);
    } else check_global(c, t, pc, address, n, access);
    if (!is_weak(access) && !(access & ACCESS_MBARRIER)) synchronise(c, t, address, access);
}

// An asynchronous copy has arrived: from now on it is an ordinary write of thread t. clock: when it was, by the
// thread's own clock; 0 for now
__device__ __noinline__ void check_arrival(Context* c, long long t, long long pc, Address address, long long n, unsigned clock) {
    Checks* k = c->checks;
    Context* block = block_at(c, address);
    if (!block) return;
    long long first = offset_in_block(address);
    for (long long byte = first; byte < first + n;) {
        long long g = next_cell(block, &byte, first + n);
        ShadowCell* cell = cells_of(block) + g;
        RareCell* rare = begin_rare(block, g);
        rare->in_flight.clock = 0;
        cell->readers &= ~IS_RARE;
        record(c, &cell->write, t, pc, ACCESS_WRITE | ACCESS_PROXY);
        if (clock) cell->write.clock = clock;
    }
    k->cells_checked = 1;
    unsigned char* ready = ready_flags(c, t, address);
    for (long long i = 0; i < n; ++i)
        if (ready[i] == BYTE_UNWRITTEN) ready[i] = BYTE_WRITTEN;
}

// Returns the thread of the block whose copy by this instruction wrote the cell at an address last; -1 if
// none did, or the address is outside the block's shared memory.
__device__ long long last_writer(Context* c, long long pc, Address address) {
    long long byte = offset_in_block(address);
    if (window_of(address) != WINDOW_SHARED || block_at(c, address) != c || byte >= c->shared_bytes) return -1;
    const Event* write = &cells_of(c)[next_cell(c, &byte, byte + WIDE_CELL)].write;
    c->checks->cells_checked = 1;
    bool is_copy = write->clock > c->checks->base && write->pc == pc;
    return is_copy ? write->thread - c->rank * c->threads : -1;
}

// ---- barriers and collectives

// Reports a collective whose mask has lanes that have exited, or lacks a lane that runs it.
// Whether a lane at a warp-wide instruction needs one that has returned. A barrier, a vote, a match and
// a reduction are those of the lanes that are left; a shuffle may not read a lane that has returned.
__device__ bool needs_returned_lane(Context* c, long long w, int lane, unsigned gone) {
    Thread* thread = c->thread + LANES * w + lane;
    switch (thread->collective) {
        case COLLECTIVE_SYNC: return gone && thread->argument;  // elect.sync may choose any
        case COLLECTIVE_VOTE:
        case COLLECTIVE_MATCH:
        case COLLECTIVE_REDUCE: return false;
        case COLLECTIVE_SHUFFLE: {
            int from = shuffle_source(c, w, lane, thread->argument);
            return from >= 0 && gone >> from & 1;
        }
        default: return gone;
    }
}

__device__ __noinline__ void check_collective(Context* c, long long w, unsigned here, unsigned alive) {
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
        if (thread->mask && (needs_returned_lane(c, w, lane, gone) || !(thread->mask >> lane & 1)))
            note(c, FINDING_KIND_MISSING_LANES, thread->pc >> 2, -1, first + lane, -1, thread->mask, 0, 0, 0);
    }
    if (!orders) return;  // only bar.warp.sync orders memory, and a wait for the instructions of all lanes
    Thread* one = c->thread + first + __ffs(here) - 1;
    if (one->collective == COLLECTIVE_WGMMA_WAIT) check_products(c, w, c->thread[first].products - one->argument);
    while (here) {  // lanes of different masks do not meet
        unsigned mask = c->thread[first + __ffs(here) - 1].mask, group = 0;
        for (int lane = 0; lane < LANES; ++lane)
            if (here >> lane & 1 && c->thread[first + lane].mask == mask) group |= 1u << lane;
        here &= ~group;
        for (long long t = 0; t < c->threads; ++t) k->here[t] = t / LANES == w && group >> t % LANES & 1;
        forget(c, k->joined);
        for (int lane = 0; lane < LANES; ++lane)
            if (group >> lane & 1) join(c, k->joined, clock_of(c, first + lane));
        for (int lane = 0; lane < LANES; ++lane)
            if (group >> lane & 1) {
                assign(c, clock_of(c, first + lane), k->joined);
                tick(c, first + lane);
            }
        share_fences(c, k->here);
    }
}

// The clocks of threads that arrived at a barrier of the block without waiting.
__device__ unsigned* arrival_at(Context* c, long long barrier) {
    return c->checks->arrival + (c->rank * NAMED_BARRIERS + barrier) * clock_words(c);
}

// Whether CLOCK_STEP flags from one on are all set; `left`: how many flags there are.
const unsigned long long ALL_SET = 0x0101010101010101ull;

__device__ __forceinline__ bool are_set(const unsigned char* flags, long long left) {
    static_assert(CLOCK_STEP == sizeof ALL_SET, "a flag is a byte of a word");
    return left >= CLOCK_STEP && *(const unsigned long long*)flags == ALL_SET;
}

__device__ unsigned greatest(const unsigned* numbers, long long n) {
    unsigned most[CLOCK_STEP] = {}, all = 0;
    long long whole = n & ~(CLOCK_STEP - 1ll);
    for (long long i = 0; i < whole; i += CLOCK_STEP)
#pragma unroll
        for (int j = 0; j < CLOCK_STEP; ++j) most[j] = most[j] < numbers[i + j] ? numbers[i + j] : most[j];
    for (long long i = whole; i < n; ++i) all = all < numbers[i] ? numbers[i] : all;
#pragma unroll
    for (int j = 0; j < CLOCK_STEP; ++j) all = all < most[j] ? most[j] : all;
    return all;
}

// The threads of the block with a mark in `here` meet at a barrier: each then knows what all knew.
__device__ void meet(Context* c, int barrier) {
    Checks* k = c->checks;
    long long n = c->threads, first = number_of(c, 0);
    unsigned *arrival = arrival_at(c, barrier), *joined = k->joined + first, *own = own_clock(c, 0);
    unsigned char *here = k->here, *has_common = k->has_common + first;
    bool any_common = false, is_everybody = true;
    assign(c, k->joined, arrival);
    for (long long t = 0; t < n; ++t) {
        if (are_set(here + t, n - t) && are_set(has_common + t, n - t)) {
            any_common = true;
            unsigned x[CLOCK_STEP];
#pragma unroll
            for (int i = 0; i < CLOCK_STEP; ++i) x[i] = own[t + i];
#pragma unroll
            for (int i = 0; i < CLOCK_STEP; ++i) joined[t + i] = x[i];
            t += CLOCK_STEP - 1;
            continue;
        }
        is_everybody &= here[t] || c->thread[t].state == STATE_EXITED;
        if (!here[t] || !has_common[t]) {
            unsigned* clock = clock_of(c, t);  // threads that are not at the barrier keep their clocks
            if (here[t]) join(c, k->joined, clock);
            continue;
        }
        any_common = true;
        joined[t] = own[t];
    }
    if (any_common) join(c, k->joined, common_of(c));
    assign(c, common_of(c), k->joined);
    if (is_everybody) assign(c, floor_of(c), k->joined);
    share_fences(c, here);
    // All go on with the same number, so that a line can describe what they do next.
    unsigned next = greatest(joined, n) + 1;
    bool all_here = true;
    for (long long t = 0; t < n; ++t) {
        if (are_set(here + t, n - t)) {
            *(unsigned long long*)(has_common + t) = ALL_SET;
#pragma unroll
            for (int i = 0; i < CLOCK_STEP; ++i) own[t + i] = next;
            t += CLOCK_STEP - 1;
        } else if (here[t]) has_common[t] = 1, own[t] = next;
        else all_here = false;
    }
    if (all_here) k->in_step |= 1ll << c->rank;
    if (all_here && c->cluster_blocks == 1) k->settled = next - 1;
    forget(c, arrival);
}

// A barrier completes: accesses of all threads at it are now ordered before it. `left` threads of
// the block have exited.
__device__ __noinline__ void check_barrier(Context* c, int barrier, long long left) {
    for (long long t = 0; t < c->threads; ++t)
        c->checks->here[t] = c->thread[t].state == STATE_BARRIER && c->thread[t].barrier == barrier;
    meet(c, barrier);
    for (long long t = 0; t < c->threads; ++t) {
        Thread* thread = c->thread + t;
        if (thread->state != STATE_BARRIER || thread->barrier != barrier) continue;
        if (left && !thread->expected)
            note(c, FINDING_KIND_EARLY_RETURN, thread->pc >> 2, -1, t, -1, left, 0, 0, 0);
        // the lanes of a warp must meet at one instruction, unless it is not `.aligned`
        for (long long u = t / LANES * LANES; thread->aligned && u < t; ++u) {
            Thread* other = c->thread + u;
            bool elsewhere = other->state != STATE_EXITED && (other->state != STATE_BARRIER || other->pc != thread->pc);
            if (elsewhere) note(c, FINDING_KIND_DIVERGENT_BARRIER, thread->pc >> 2, other->pc >> 2, t, number_of(c, u), 0, 0, 0, 0);
        }
    }
}
