/*
 * A congestion control with a fixed window, and everything that can be wrong with one: the compiler's -D names what is
 * to be otherwise.
 */
#include "wormhole_plugin.h"

#include <string.h>

#ifndef MAGIC
#define MAGIC WORMHOLE_PLUGIN_MAGIC
#endif
#ifndef ABI
#define ABI WORMHOLE_PLUGIN_ABI
#endif
#ifndef STRUCT_SIZE
#define STRUCT_SIZE sizeof(struct wormhole_cca)
#endif
#ifndef KIND
#define KIND WORMHOLE_CCA
#endif
#ifndef NAME
#define NAME "hostile"
#endif
#ifndef STATE_SIZE
#define STATE_SIZE 24
#endif
#ifndef STATE_ALIGN
#define STATE_ALIGN 8
#endif
#ifndef CONFIG_SIZE
#define CONFIG_SIZE 8
#endif
#ifndef HEADER_BYTES
#define HEADER_BYTES 0
#endif
#ifndef START
#define START start
#endif
#ifndef ON_ACK
#define ON_ACK nothing
#endif
#ifndef RELATIVE
#define RELATIVE relative
#endif
#ifndef ABSOLUTE
#define ABSOLUTE absolute
#endif
#ifndef ENTRY
#define ENTRY wormhole_plugin
#endif

/* What is not chosen is not used. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-const-variable"

struct state {
    uint64_t line_rate_bps;
    uint64_t window_bytes;
    uint64_t seen_ps;
};

static int32_t configure(void *config, const char *key, int64_t value) {
    if (strcmp(key, "status") == 0) return (int32_t)value;
    if (strcmp(key, "window") != 0) return WORMHOLE_UNKNOWN_KEY;
    memcpy(config, &value, sizeof value);
    return value < 0 ? WORMHOLE_BAD_VALUE : WORMHOLE_OK;
}

static void start(const void *config, void *memory, const struct wormhole_flow *flow, uint64_t now_ps,
                  struct wormhole_out *out) {
    struct state *state = memory;
    int64_t window = 0;
    (void)now_ps;
    memcpy(&window, config, sizeof window);
    state->line_rate_bps = flow->line_rate_bps;
    state->window_bytes = window > 0 ? (uint64_t)window : flow->bdp_bytes;
    out->window_bytes = state->window_bytes;
}

static void window_zero_at_start(const void *config, void *memory, const struct wormhole_flow *flow, uint64_t now_ps,
                                 struct wormhole_out *out) {
    start(config, memory, flow, now_ps, out);
    out->window_bytes = 0;
}

static void timer_at_start(const void *config, void *memory, const struct wormhole_flow *flow, uint64_t now_ps,
                           struct wormhole_out *out) {
    start(config, memory, flow, now_ps, out);
    out->timers_set = 1;
    out->timer_ps[0] = 1000000;
}

#define ON(name)                                                                          \
    static void name(const void *config, void *memory, const struct wormhole_ack *ack,    \
                     struct wormhole_out *out)
#define UNUSED (void)config, (void)memory, (void)ack, (void)out

ON(nothing) { UNUSED; }
ON(rate_zero) { UNUSED; out->rate_bps = 0; }
ON(window_zero) { UNUSED; out->window_bytes = 0; }
ON(too_fast) { UNUSED; out->rate_bps = UINT64_MAX; }
ON(timer_for_ever) { UNUSED; out->timers_set = 1; out->timer_ps[0] = UINT64_MAX; }
ON(timer_at_once) { UNUSED; out->timers_set = 2; out->timer_ps[1] = 0; }
ON(no_such_timer) { UNUSED; out->timers_set = 8; }
ON(overrun) { UNUSED; memset(memory, 0, sizeof(struct state) + 8); }

/* The rate is another in every other nanosecond. */
ON(by_the_clock) { UNUSED; out->rate_bps = ((struct state *)memory)->line_rate_bps / (1 + ack->now_ps / 1000 % 2); }

/* The rate is another at every third call, whosever flow it is. */
ON(capricious) {
    static uint64_t calls;
    UNUSED;
    out->rate_bps = ((struct state *)memory)->line_rate_bps / (1 + (++calls % 3 == 0));
}

/* The time is kept, and not made relative. */
ON(keeps_time) { UNUSED; ((struct state *)memory)->seen_ps = ack->now_ps; }

static int32_t relative(const void *config, void *memory, const struct wormhole_origin *origin) {
    (void)config, (void)memory, (void)origin;
    return 1;
}

static int32_t relative_seven(const void *config, void *memory, const struct wormhole_origin *origin) {
    (void)config, (void)memory, (void)origin;
    return 7;
}

static void absolute(const void *config, void *memory, const struct wormhole_origin *origin) {
    (void)config, (void)memory, (void)origin;
}

static const struct wormhole_cca DESCRIPTOR = {
    .plugin = {
        .magic = MAGIC,
        .abi_version = ABI,
        .struct_size = STRUCT_SIZE,
        .kind = KIND,
        .model_version = 3,
        .name = NAME,
        .config_size = CONFIG_SIZE,
        .config_align = 8,
        .state_size = STATE_SIZE,
        .state_align = STATE_ALIGN,
        .configure = configure,
    },
    .header_bytes = HEADER_BYTES,
    .start = START,
    .on_ack = ON_ACK,
    .relative = RELATIVE,
    .absolute = ABSOLUTE,
};

const struct wormhole_plugin *ENTRY(void);
const struct wormhole_plugin *ENTRY(void) {
#ifdef NULL_DESCRIPTOR
    return 0;
#else
    return &DESCRIPTOR.plugin;
#endif
}
