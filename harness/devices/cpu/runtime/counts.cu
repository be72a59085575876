// What the memory system would do: sectors of global memory and wavefronts of shared memory, by
// instruction, as a multiprocessor counts them.

__device__ void sort(Address* x, int n) {
    for (int i = 1; i < n; ++i)
        for (int j = i; j > 0 && x[j] < x[j - 1]; --j) {
            Address swapped = x[j];
            x[j] = x[j - 1];
            x[j - 1] = swapped;
        }
}

// How many different values there are; sorts them.
__device__ int distinct(Address* x, int n) {
    sort(x, n);
    int found = 0;
    for (int i = 0; i < n; ++i) found += i == 0 || x[i] != x[i - 1];
    return found;
}

// Different 32-byte sectors that the lanes touch.
__device__ int sectors(const Address* address, unsigned here, int bytes) {
    Address touched[2 * LANES];
    int n = 0;
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) {
            touched[n++] = address[lane] >> 5;
            touched[n++] = (address[lane] + bytes - 1) >> 5;
        }
    return distinct(touched, n);
}

// Passes over the 32 banks for some lanes: the most different words that one bank must deliver.
__device__ int passes(const Address* address, unsigned lanes, int bytes) {
    Address words[4 * LANES];
    int n = 0, in_bank[LANES], most = 0;
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; (lanes >> lane & 1) && i < (bytes + 3) / 4; ++i) words[n++] = (address[lane] >> 2) + i;
    sort(words, n);
    for (int i = 0; i < LANES; ++i) in_bank[i] = 0;
    for (int i = 0; i < n; ++i)
        if (i == 0 || words[i] != words[i - 1]) {
            int count = ++in_bank[words[i] % LANES];
            most = most < count ? count : most;
        }
    return most;
}

// Whether all lanes pair up with equal addresses at distance 1 or 2: then two phases become one.
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

// The least wavefronts for as many different bytes.
__device__ int min_wavefronts(const Address* address, unsigned here, int bytes) {
    Address words[4 * LANES];
    int n = 0;
    for (int lane = 0; lane < LANES; ++lane)
        for (int i = 0; (here >> lane & 1) && i < (bytes + 3) / 4; ++i) words[n++] = (address[lane] >> 2) + i;
    int least = (distinct(words, n) + LANES - 1) / LANES, phases = bytes == 16 ? 2 : 1;
    return least < phases ? phases : least;
}

// kind: bytes << 8 | access
__device__ void count_access(Context* c, long long w, long long pc, unsigned here, long long kind) {
    Count* row = c->counts->rows + pc;
    Address address[LANES];
    Address window = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        address[lane] = mail(c, w, 0)[lane] | (Address)mail(c, w, 1)[lane] << 32;
        if (here >> lane & 1) window = window_of(address[lane]);
    }
    int bytes = c->counts->width[pc] < 0 ? (int)(kind >> 8) : c->counts->width[pc];
    if (!bytes || window == WINDOW_LOCAL) return;
    if (window == WINDOW_SHARED) {
        row->shared_requests += 1;
        row->wavefronts += wavefronts(address, here, bytes);
        row->min_wavefronts += min_wavefronts(address, here, bytes);
    } else {
        row->global_requests += 1;
        row->sectors += sectors(address, here, bytes);
    }
}

// ldmatrix and stmatrix: every 8x8 matrix is eight rows of 16 bytes, one wavefront at best.
__device__ void count_row(Context* c, long long pc, int i, Address address) {
    c->counts->matrix_rows[i] = address;
}

__device__ void count_rows(Context* c, long long pc, int rows, bool store) {
    Count* row = c->counts->rows + pc;
    row->shared_requests += 1;
    for (int first = 0; first < rows; first += 8) {
        row->wavefronts += passes(c->counts->matrix_rows, 0xffu << first, 16);
        row->min_wavefronts += 1;
    }
}

__device__ void count_block(Context* c, long long pc, unsigned here) {
    c->counts->rows[pc].threads += __popc(here);
}

__device__ void count_branch(Context* c, long long w, long long pc, unsigned here) {
    unsigned taken = 0;
    for (int lane = 0; lane < LANES; ++lane) taken |= (mail(c, w, 0)[lane] & 1) << lane;
    taken &= here;
    if (taken && taken != here) c->counts->rows[pc].divergent += 1;
}
