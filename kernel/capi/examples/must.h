// What the examples share: a call that fails ends the program with the status in words.

#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "wormhole.h"

static inline void must(WhStatus status, const char *call)
{
    if (status != WH_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", call, wh_status_text(status));
        exit(EXIT_FAILURE);
    }
}

#define MUST(call) must((call), #call)

// A kernel in memory of its own: `free` the memory when it is not used any more.
static inline WhKernel *new_kernel(WhConfig *config, void **memory)
{
    size_t bytes = 0;
    MUST(wh_sizeof(config, &bytes));
    // calloc takes untouched pages from the system: large limits cost nothing until they are used.
    *memory = calloc(1, bytes);
    if (*memory == NULL) {
        fprintf(stderr, "no %zu bytes of memory\n", bytes);
        exit(EXIT_FAILURE);
    }
    config->flags |= WH_MEMORY_IS_ZERO;
    WhKernel *kernel = NULL;
    MUST(wh_init(*memory, bytes, config, &kernel));
    return kernel;
}

#endif
