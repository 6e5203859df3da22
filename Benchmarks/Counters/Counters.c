#define _GNU_SOURCE
#include "Counters.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

#define COUNTER __attribute__((used, visibility("hidden"))) uint64_t

COUNTER nagare_allocations, nagare_frees, nagare_objects, nagare_retains, nagare_releases, nagare_locks,
    nagare_accesses, nagare_onces, nagare_hops, nagare_casts;

nagare_counts nagare_counts_now(void) {
    return (nagare_counts){
        .allocations = nagare_allocations,
        .frees = nagare_frees,
        .objects = nagare_objects,
        .retains = nagare_retains,
        .releases = nagare_releases,
        .locks = nagare_locks,
        .accesses = nagare_accesses,
        .onces = nagare_onces,
        .hops = nagare_hops,
        .casts = nagare_casts,
    };
}

uint64_t nagare_thread_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t nagare_heap_bytes(void) {
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

int nagare_sink_open(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int bytes = 1;
    if (sink < 0 || sender < 0) return -1;
    if (setsockopt(sink, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0) return -1;
    if (bind(sink, (struct sockaddr *)&address, sizeof address) != 0) return -1;
    if (getsockname(sink, (struct sockaddr *)&address, &length) != 0) return -1;
    return connect(sender, (struct sockaddr *)&address, length) == 0 ? sender : -1;
}

int64_t nagare_sink_send(int fd, const void *bytes, size_t length, uint16_t segment_bytes) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {.header = {.cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(uint16_t))}};
    memcpy(CMSG_DATA(&control.header), &segment_bytes, sizeof segment_bytes);
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    return sendmsg(fd, &message, 0);
}

// Instrumentation stops as well as collection, because callgrind always counts calls in instrumented code.
void nagare_collect_begin(void) { CALLGRIND_START_INSTRUMENTATION; }
void nagare_collect_end(const char *name) {
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(name);
}

// The shared libraries' own definition of a function that this file interposes.
static void *real_function(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "The shared libraries have no %s.\n", name);
        abort();
    }
    return found;
}

// MARK: The allocator. glibc exports it under other names too, so no dlsym is needed, which would itself allocate.

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) {
    nagare_allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    nagare_allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    nagare_allocations++;
    return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) {
    nagare_allocations++;
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    nagare_allocations++;
    return __libc_memalign(alignment, size);
}
int posix_memalign(void **result, size_t alignment, size_t size) {
    nagare_allocations++;
    void *made = __libc_memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *result = made;
    return 0;
}
void free(void *old) {
    if (old != NULL) nagare_frees++;
    __libc_free(old);
}

// MARK: Locks

// Libraries take locks while they are loaded, before the constructor below runs.
#define COUNTED_LOCK(name, type)                                         \
    int name(type *lock) {                                               \
        static int (*real)(type *);                                      \
        if (real == NULL) real = (int (*)(type *))real_function(#name);  \
        nagare_locks++;                                                  \
        return real(lock);                                               \
    }

COUNTED_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNTED_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNTED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

// MARK: The Swift runtime
//
// Its functions have calling conventions of their own, so each is interposed by a jump that changes no register.

#define RUNTIME_FUNCTIONS(each)                        \
    each(swift_allocObject, nagare_objects)            \
    each(swift_retain, nagare_retains)                 \
    each(swift_retain_n, nagare_retains)               \
    each(swift_tryRetain, nagare_retains)              \
    each(swift_bridgeObjectRetain, nagare_retains)     \
    each(swift_bridgeObjectRetain_n, nagare_retains)   \
    each(swift_nonatomic_retain, nagare_retains)       \
    each(swift_unownedRetain, nagare_retains)          \
    each(swift_unownedRetainStrong, nagare_retains)    \
    each(swift_weakLoadStrong, nagare_retains)         \
    each(swift_weakTakeStrong, nagare_retains)         \
    each(swift_release, nagare_releases)               \
    each(swift_release_n, nagare_releases)             \
    each(swift_bridgeObjectRelease, nagare_releases)   \
    each(swift_bridgeObjectRelease_n, nagare_releases) \
    each(swift_nonatomic_release, nagare_releases)     \
    each(swift_unownedRelease, nagare_releases)        \
    each(swift_beginAccess, nagare_accesses)           \
    each(swift_once, nagare_onces)                     \
    each(swift_dynamicCast, nagare_casts)              \
    each(swift_dynamicCastClass, nagare_casts)         \
    each(swift_conformsToProtocol, nagare_casts)       \
    each(swift_getGenericMetadata, nagare_casts)       \
    each(swift_task_create, nagare_hops)               \
    each(swift_task_switch, nagare_hops)               \
    each(swift_task_enqueue, nagare_hops)              \
    each(swift_task_enqueueGlobal, nagare_hops)

#define REAL(name, counter) __attribute__((used, visibility("hidden"))) void *real_##name;
RUNTIME_FUNCTIONS(REAL)

__attribute__((used, constructor, visibility("hidden"))) void nagare_counters_resolve(void) {
#define RESOLVE(name, counter) real_##name = real_function(#name);
    RUNTIME_FUNCTIONS(RESOLVE)
}

#if defined(__x86_64__)
#define TRAMPOLINE(name, counter)               \
    __asm__(".text\n"                           \
            ".globl " #name "\n"                \
            ".type " #name ", @function\n" #name ":\n" \
            "incq " #counter "(%rip)\n"         \
            "cmpq $0, real_" #name "(%rip)\n"   \
            "je 1f\n"                           \
            "jmp *real_" #name "(%rip)\n"       \
            "1: call nagare_counters_early\n"   \
            "jmp *real_" #name "(%rip)\n"       \
            ".size " #name ", . - " #name "\n");
RUNTIME_FUNCTIONS(TRAMPOLINE)

// Resolves the functions for calls before the constructor has run, and changes no register.
__asm__(".text\n"
        ".type nagare_counters_early, @function\n"
        "nagare_counters_early:\n"
        "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\n"
        "push %rbp\nmov %rsp, %rbp\nand $-16, %rsp\n"
        "call nagare_counters_resolve\n"
        "mov %rbp, %rsp\npop %rbp\n"
        "pop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\n"
        "ret\n");
#else
#error "The counters interpose the runtime's functions in x86-64 assembly only."
#endif
