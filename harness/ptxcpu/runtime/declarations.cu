// Declarations of functions that the files of the runtime share. The files are compiled together,
// in the order of execution/build.py, after the structs of layout.py. Calls between files are not
// inlined.

struct Round;

// Returns the cell of a byte; cells have 1, 2 or 4 bytes. (A division would take longer than the rest of a check.)
__device__ __forceinline__ long long cell_of(long long byte, long long width) { return byte >> (width >> 1); }

// The same event of a lane further on.
__device__ __forceinline__ Event of_lane(const Event* first, int lane) {
    Event e = *first;
    e.thread += lane;
    return e;
}

// memory.cu
extern "C" __device__ void rt_fault(Context* c, long long t, long long fault, long long pc,
                                    Address address, long long bytes, long long access);
__device__ __noinline__ long long window_of(Address address);
__device__ __noinline__ long long offset_in_window(Address address);
__device__ __noinline__ Context* block_at(Context* c, Address address);
__device__ __noinline__ long long offset_in_block(Address address);
__device__ __noinline__ Address shared_begin(Context* c);
__device__ __noinline__ Address address_in(Context* block, Address address);
__device__ __noinline__ void copy_bytes(char* to, const char* from, long long n);
__device__ __noinline__ void compare_diverted_write(Context* c);
__device__ __noinline__ char* checked_access(Context* c, long long t, long long pc, Address address, long long n,
                       long long align, int access);

// clocks.cu
__device__ __noinline__ long long number_of(Context* c, long long t);
__device__ __noinline__ long long threads_of_cluster(Context* c);
__device__ __noinline__ long long clock_words(Context* c);
__device__ __noinline__ unsigned* clock_of(Context* c, long long t);
__device__ __noinline__ const unsigned* known_to(Context* c, long long t);
__device__ __noinline__ unsigned* own_clock(Context* c, long long t);
__device__ __noinline__ const unsigned* fence_of(Context* c, int which, int distance, long long t);
__device__ __noinline__ void join(Context* c, unsigned* into, const unsigned* from);
__device__ __noinline__ void assign(Context* c, unsigned* into, const unsigned* from);
__device__ __noinline__ void forget(Context* c, unsigned* clock);
__device__ __noinline__ unsigned join_sets(Context* c, unsigned a, unsigned b);
__device__ __noinline__ void tick(Context* c, long long t);
__device__ __noinline__ void begin_run(Context* c);
__device__ __noinline__ void begin_clocks(Context* c);
__device__ __noinline__ bool is_known(Context* c, long long t, const Event* e);
__device__ __noinline__ int lanes_that_know(Context* c, long long t, const Event* first, int lanes);
__device__ __noinline__ bool passed_proxy_fence(Context* c, long long t, const Event* write);
__device__ __noinline__ void share_fences(Context* c, const unsigned char* here);
__device__ __noinline__ void synchronise(Context* c, long long t, Address address, int access);
__device__ __noinline__ void arrive(Context* c, long long t, Address mbarrier, bool releases);
__device__ __noinline__ void leave(Context* c, long long t, Address mbarrier, bool acquires);
__device__ __noinline__ void end_phase(Context* c, Address mbarrier);

// checks.cu
__device__ __noinline__ void begin_checks(Context* c);
__device__ __noinline__ unsigned* arrival_at(Context* c, long long barrier);
__device__ void record(Context* c, Event* e, long long t, long long pc, int access);
__device__ __noinline__ void check_access(Context* c, long long t, long long pc, Address address, long long n,
                             int access);
__device__ __noinline__ void check_global(Context* c, long long t, long long pc, Address address, long long n,
                             int access);
__device__ __noinline__ void divide_line(Checks* k, long long window, long long number);
__device__ __noinline__ void note_bad_access(Context* c, long long t, long long pc, Address address, long long n,
                                int access);
__device__ __noinline__ void check_arrival(Context* c, long long t, long long pc, Address address, long long n);
__device__ __noinline__ void check_collective(Context* c, long long w, unsigned here, unsigned alive);
__device__ __noinline__ void check_products(Context* c, long long w, long long waited_for);
__device__ __noinline__ void check_warpgroups(Context* c);
__device__ __noinline__ void check_barrier(Context* c, int barrier, long long left);

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
__device__ __noinline__ void begin_product_reads(ProductReads* r, Context* c, long long w, long long pc);

// cluster.cu
__device__ __noinline__ void begin_cluster_checks(Context* c);
__device__ __noinline__ bool init_is_known(Context* c, long long t, Event* init);
__device__ __noinline__ void check_visit(Context* c, long long t, long long pc, Address address, long long n, int access);
__device__ __noinline__ void check_visits(Context* c);
__device__ __noinline__ void advance_cluster_barrier(Context* c);
__device__ __noinline__ bool leaves_cluster_barrier(Context* c, long long t);

// copies.cu
__device__ __noinline__ void check_copies(Context* c);
__device__ __noinline__ bool phase_is_over(Context* c, long long t);

// watch.cu
__device__ __noinline__ void watch_mbarrier(Context* c, long long t, Address mbarrier);
__device__ __noinline__ void watch_bulk(Context* c, long long t, Address to, long long bytes);
__device__ __noinline__ void watch_arrival(Context* c, long long t, Address to, long long bytes);

// warp.cu
__device__ __noinline__ int shuffle_source(Context* c, long long w, int lane, long long way);
__device__ __noinline__ void execute_collective(Context* c, long long w, unsigned here);
__device__ __noinline__ unsigned* lane_words(Context* c, long long w, int word);

// tensor.cu
__device__ __noinline__ void move_matrix(Context* c, long long w, long long pc, long long variant, int address, int data,
                                         bool store);
__device__ __noinline__ void wmma_move(Context* c, long long w, long long pc, long long variant, bool store);
__device__ __noinline__ void wmma(Context* c, long long w, long long variant);
__device__ __noinline__ void mma_double(Context* c, long long w, long long variant);

// wgmma.cu
__device__ __noinline__ void execute_products(Context* c, long long w, const struct Product* product);

// counts.cu
__device__ __noinline__ void count_traces(Context* c, long long w);
__device__ __noinline__ void count_access(Context* c, long long pc, const Address* address, unsigned here, int bytes);
__device__ __noinline__ int pieces(const Address* address, unsigned here, int bytes, int log2);
__device__ __noinline__ int different_words(const Address* address, unsigned here, int bytes);
__device__ __noinline__ int first_sectors(Context* c, const Address* address, unsigned here, int bytes, long long window);
__device__ __noinline__ int new_sectors(Context* c, const Address* address, unsigned here, int bytes);

// copy_counts.cu
__device__ __noinline__ void count_target(Context* c, long long pc, const Address* address, unsigned here, int bytes);
__device__ __noinline__ void count_source(Context* c, long long pc, const Address* from, unsigned here, int bytes, bool bypass);

extern "C" __device__ void rt_trace(Context* c, long long t, long long order, Address address,
                                    long long kind);

// checks.cu, copies.cu, tensor.cu, scheduler.cu: kept apart to keep the code small
__device__ __noinline__ void note(Context* c, long long kind, long long pc, long long other_pc,
                                  long long thread, long long other_thread, Address address,
                                  long long bytes, int access, int other_access);
__device__ __noinline__ void conflict(Context* c, long long t, long long pc, Address address,
                                      long long n, int access, Event* other);
__device__ __noinline__ unsigned char* ready_flags(Context* c, long long t, Address address);
__device__ __noinline__ void mbarrier_advance(Context* c, Address mbarrier, unsigned long long* word,
                                              long long arrivals, long long bytes, long long dropped);
__device__ __noinline__ int passes(const Address* address, unsigned lanes, int bytes);
__device__ __noinline__ int distinct(Address* x, int n);
__device__ __noinline__ void run_collectives(Context* c, long long w);
__device__ __noinline__ void collect_runnable(Context* c, Round* round);
__device__ __noinline__ void run_cluster(Context* c, bool backward);
__device__ __noinline__ void begin_bulk(Context* c, long long t, long long pc, Address to, Address from,
                                        long long bytes, Address mbarrier, int reach);
