#ifndef NAGARE_THREAD_H
#define NAGARE_THREAD_H

#include <stdint.h>

/* Names the calling thread, for debuggers and top; the kernel takes 15 bytes, the rest is cut off. */
void nagare_name_thread(const char *name);

/* Asks for time slices of that many nanoseconds for the calling thread. The scheduler of Linux 6.12 and later keeps it between
   0.1 and 100 ms, and runs a thread with short slices earlier, for no more of a processor in all. An earlier kernel ignores it.
   Returns 0, or errno. */
int nagare_request_slice(uint64_t nanoseconds);

/* The slice of the calling thread in nanoseconds; 0 where the kernel does not tell. */
uint64_t nagare_slice(void);

#endif
