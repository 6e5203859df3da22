#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of the kernel's struct sched_attr, which the C library does not declare. */
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

static int read_attributes(struct attributes *attributes) {
    memset(attributes, 0, sizeof *attributes);
    return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0 ? 0 : errno;
}

void nagare_name_thread(const char *name) {
    char cut[16];
    strncpy(cut, name, sizeof cut - 1);
    cut[sizeof cut - 1] = 0;
    (void)pthread_setname_np(pthread_self(), cut);
}

int nagare_request_slice(uint64_t nanoseconds) {
    struct attributes attributes;
    int error = read_attributes(&attributes);
    if (error != 0) return error;
    /* An operator who chose another policy has given the thread what it needs. */
    if (attributes.policy != SCHED_OTHER) return 0;
    attributes.size = sizeof attributes;
    attributes.runtime = nanoseconds;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 ? 0 : errno;
}

uint64_t nagare_slice(void) {
    struct attributes attributes;
    return read_attributes(&attributes) == 0 ? attributes.runtime : 0;
}
