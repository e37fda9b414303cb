/*
 * A marker (with -DMARKS=...) and a buffer manager that break what they must keep to: -D names the functions that are
 * to be used.
 */
#include "wormhole_plugin.h"

/* What is not chosen is not used. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define HEAD(TYPE, KIND)                             \
    .plugin = {                                      \
        .magic = WORMHOLE_PLUGIN_MAGIC,              \
        .abi_version = WORMHOLE_PLUGIN_ABI,          \
        .struct_size = sizeof(TYPE),                 \
        .kind = KIND,                                \
        .model_version = 1,                          \
        .name = "hostile",                           \
        .state_size = 8,                             \
        .state_align = 8,                            \
    }

#ifdef MARKS
static void start(const void *config, void *state, const struct wormhole_port *port) {
    (void)config, (void)state, (void)port;
}

#define MARK(name)                                                                                             \
    static int32_t name(const void *config, void *state, uint64_t queue_bytes, uint64_t random, uint32_t *drew)

/* Neither yes nor no. */
MARK(perhaps) {
    (void)config, (void)state, (void)queue_bytes, (void)random, (void)drew;
    return 2;
}

/* Chance decides, and nobody is told. */
MARK(secretly) {
    (void)config, (void)state, (void)queue_bytes, (void)drew;
    return random % 100 == 0;
}

static const struct wormhole_marker DESCRIPTOR = {
    HEAD(struct wormhole_marker, WORMHOLE_MARKER),
    .start = start,
    .marks = MARKS,
};
#else
#ifndef RESUMES
#define RESUMES resumes
#endif
#ifndef IS_CALM
#define IS_CALM is_not_calm
#endif

static int32_t admit(const void *config, void *sw, const void *port, void *queue, uint32_t bytes) {
    (void)config, (void)port;
    *(uint64_t *)sw += bytes;
    *(uint64_t *)queue += bytes;
    return 1;
}

static void release(const void *config, void *sw, const void *port, void *queue, uint32_t bytes) {
    (void)config, (void)port;
    *(uint64_t *)sw -= bytes;
    *(uint64_t *)queue -= bytes;
}

/* Depends on what the switch holds. */
static int32_t pauses(const void *config, const void *sw, const void *port, const void *queue) {
    (void)config, (void)port, (void)queue;
    return *(const uint64_t *)sw > 50000;
}

static int32_t resumes(const void *config, const void *sw, const void *port, const void *queue) {
    return *(const uint64_t *)queue == 0 || !pauses(config, sw, port, queue);
}

static int32_t never(const void *config, const void *sw, const void *port, const void *queue) {
    (void)config, (void)sw, (void)port, (void)queue;
    return 0;
}

static int32_t is_not_calm(const void *config, const void *sw, uint64_t more_bytes) {
    (void)config, (void)sw, (void)more_bytes;
    return 0;
}

static int32_t is_always_calm(const void *config, const void *sw, uint64_t more_bytes) {
    (void)config, (void)sw, (void)more_bytes;
    return 1;
}

static int32_t is_perhaps_calm(const void *config, const void *sw, uint64_t more_bytes) {
    (void)config, (void)sw, (void)more_bytes;
    return -1;
}

static void replace(const void *config, void *sw, const void *queue, const void *to) {
    (void)config;
    *(uint64_t *)sw += *(const uint64_t *)to - *(const uint64_t *)queue;
}

static const struct wormhole_buffers DESCRIPTOR = {
    HEAD(struct wormhole_buffers, WORMHOLE_BUFFERS),
    .queue_state_size = 8,
    .queue_state_align = 8,
    .admit = admit,
    .pauses = pauses,
    .release = release,
    .resumes = RESUMES,
    .is_calm = IS_CALM,
    .replace = replace,
};
#endif

const struct wormhole_plugin *wormhole_plugin(void) { return &DESCRIPTOR.plugin; }
