/*
 * Model plugins of Wormhole: a congestion control, a marker or a buffer manager as a shared object.
 *
 * A plugin exports one function, wormhole_plugin(), which returns a descriptor that stays as it is for ever. How to
 * write one is in models/docs/writing-a-model.md, examples are in models/templates/c.
 *
 * Rules
 *  - All that a model remembers is in the state it is handed: plain data without pointers, at an address that may
 *    change from call to call. States begin as zero bytes, are compared and copied bit for bit, and belong to the
 *    simulator.
 *  - The same inputs MUST give the same outputs. No clock, no global variables, no random numbers of its own.
 *  - A function MUST return: there are no callbacks, no exceptions across, and nothing is allocated for the other side.
 *  - Times are in picoseconds, sizes in bytes, rates in bits per second, all whole numbers.
 *
 * Versions: structures only grow at their ends. A descriptor says how long it is, so an older plugin lacks the last
 * fields, which are optional, and a newer one has some that are not read. WORMHOLE_PLUGIN_ABI changes if anything else
 * does.
 */
#ifndef WORMHOLE_PLUGIN_H
#define WORMHOLE_PLUGIN_H

#include <stdint.h>

/* The bytes WORMPLUG. */
#define WORMHOLE_PLUGIN_MAGIC UINT64_C(0x47554c504d524f57)
#define WORMHOLE_PLUGIN_ABI UINT32_C(1)

/* Kinds of plugins. */
#define WORMHOLE_CCA UINT32_C(1)
#define WORMHOLE_MARKER UINT32_C(2)
#define WORMHOLE_BUFFERS UINT32_C(3)

/* What configure() returns. */
#define WORMHOLE_OK 0
#define WORMHOLE_UNKNOWN_KEY 1
#define WORMHOLE_BAD_VALUE 2

/* Bounds that are checked when a plugin is loaded. Alignments are 1, 2, 4 or 8. */
#define WORMHOLE_MAX_NAME_BYTES 32    /* a-z, 0-9, '-' and '_' */
#define WORMHOLE_MAX_CONFIG_BYTES 4096
#define WORMHOLE_MAX_CCA_STATE_BYTES 128
#define WORMHOLE_MAX_MARKER_STATE_BYTES 32 /* per port */
#define WORMHOLE_MAX_SWITCH_STATE_BYTES 64
#define WORMHOLE_MAX_PORT_STATE_BYTES 32
#define WORMHOLE_MAX_QUEUE_STATE_BYTES 32
#define WORMHOLE_MAX_HEADER_BYTES 256

/* Bounds that are checked at run time: an output outside them ends the run. */
#define WORMHOLE_TIMERS 3
#define WORMHOLE_MIN_TIMER_PS UINT64_C(1000)             /* 1 ns */
#define WORMHOLE_MAX_TIMER_PS UINT64_C(1000000000000000) /* 1000 s */

/* What all descriptors begin with. */
struct wormhole_plugin {
    uint64_t magic;         /* WORMHOLE_PLUGIN_MAGIC */
    uint32_t abi_version;   /* WORMHOLE_PLUGIN_ABI */
    uint32_t struct_size;   /* sizeof the whole descriptor */
    uint32_t kind;          /* WORMHOLE_CCA and so on */
    uint32_t model_version; /* raised whenever the same configuration behaves differently than before */
    const char *name;
    uint64_t config_hash;   /* of parameters that are compiled in; 0 if there are none */
    uint32_t config_size;   /* bytes of the parameters, 0 if there are none */
    uint32_t config_align;
    uint32_t state_size;    /* bytes of the state per flow (cca), port (marker) or switch (buffers) */
    uint32_t state_align;
    /* Sets all parameters to what they are unless the user says otherwise. May be null: all zero. */
    void (*defaults)(void *config);
    /* Sets one parameter: WORMHOLE_OK, WORMHOLE_UNKNOWN_KEY or WORMHOLE_BAD_VALUE. May be null: there are no keys. */
    int32_t (*configure)(void *config, const char *key, int64_t value);
};

/* ---- Congestion control ---- */

/* A flow, as its congestion control may know it. */
struct wormhole_flow {
    uint64_t line_rate_bps; /* of the sender's NIC */
    uint64_t base_rtt_ps;   /* of the empty path */
    uint64_t bdp_bytes;     /* bandwidth-delay product */
    uint32_t mtu_bytes;     /* largest payload of a packet */
    uint32_t reserved;
};

/* Telemetry of a switch hop: its egress port as the packet left it. */
struct wormhole_hop {
    uint64_t at_ps; /* in profile ns3 this clock wraps after 2^24 ns */
    uint64_t tx_bytes; /* sent before this packet; in profile ns3 the counter is coarse and wraps */
    uint64_t rate_bps;
    uint64_t queue_bytes; /* left behind in the port's queues */
};

/* An acknowledgement has arrived at the sender. */
struct wormhole_ack {
    uint64_t now_ps;
    uint64_t acked_bytes;   /* received in order so far */
    uint64_t snd_nxt_bytes; /* next byte the sender would send */
    uint64_t rtt_ps;        /* since the data packet was built */
    uint32_t marked;        /* 1 if the data packet carried an ECN mark */
    uint32_t hop_count;     /* of hops */
    uint32_t hops_passed;   /* more than hop_count if the header ran out of room */
    uint32_t reserved;
    const struct wormhole_hop *hops; /* nearest to the sender first; valid during the call */
};

/* What a flow may send from now on; it comes as it was. */
struct wormhole_out {
    uint64_t window_bytes; /* unacknowledged payload, at least 1; UINT64_MAX is unlimited */
    uint64_t rate_bps;     /* of wire bytes, at least 1; above the line rate it is the line rate */
    uint32_t repace;       /* 1: the rate also applies to the packet that is already paced */
    uint32_t timers_set;   /* bit i: set timer i, in place of a pending one */
    uint64_t timer_ps[WORMHOLE_TIMERS]; /* from now, WORMHOLE_MIN_TIMER_PS to WORMHOLE_MAX_TIMER_PS */
};

/* What is absolute in a flow's state, at one moment: what a relative state is measured from. */
struct wormhole_origin {
    uint64_t now_ps;
    uint64_t acked_bytes;
    const struct wormhole_hop *hops; /* what a packet would read from each hop now, queue_bytes 0 */
    uint32_t hop_count;
    uint32_t reserved;
};

struct wormhole_cca {
    struct wormhole_plugin plugin;
    uint32_t needs_telemetry; /* 1: data packets collect a wormhole_hop at each switch */
    uint32_t header_bytes;    /* that the algorithm adds to data packets and ACKs */
    /* A flow starts. Its state is zero, out is an unlimited window at line rate. No timers are set here. */
    void (*start)(const void *config, void *state, const struct wormhole_flow *flow, uint64_t now_ps,
                  struct wormhole_out *out);
    void (*on_ack)(const void *config, void *state, const struct wormhole_ack *ack, struct wormhole_out *out);
    /* Timer 0, 1 or 2 has come due. May be null. */
    void (*on_timer)(const void *config, void *state, uint32_t timer, uint64_t now_ps, struct wormhole_out *out);
    /* The retransmission time-out has expired. May be null. */
    void (*on_timeout)(const void *config, void *state, uint64_t now_ps, struct wormhole_out *out);
    /*
     * Makes times, byte positions and counters in the state distances from the origin, in place. Two flows that behave
     * alike from now on have equal relative states, bit for bit. Returns 1, or 0 if there is none just now.
     * Both may be null: flows are then always simulated, neither memoised nor fast-forwarded exactly.
     */
    int32_t (*relative)(const void *config, void *state, const struct wormhole_origin *origin);
    /* The inverse of relative, at any origin. */
    void (*absolute)(const void *config, void *state, const struct wormhole_origin *origin);
};

/* ---- Switches ---- */

/* A port of a switch and its link. */
struct wormhole_port {
    uint64_t rate_bps;
    uint64_t delay_ps;
    uint64_t nic_rate_bps; /* of the hosts of this fabric; 0 where it is not told */
};

/* ECN marking. */
struct wormhole_marker {
    struct wormhole_plugin plugin;
    /* Sets up an egress port. Its state is zero. */
    void (*start)(const void *config, void *state, const struct wormhole_port *port);
    /*
     * Whether (1 or 0) a frame that leaves queue_bytes of its priority behind is marked. random is a random number; who
     * looks at it MUST set *drew to 1: what chance had a hand in is not memoised.
     */
    int32_t (*marks)(const void *config, void *state, uint64_t queue_bytes, uint64_t random, uint32_t *drew);
};

/* The shared buffer of a switch: admission and PFC. A queue is that of an ingress port and a priority. */
struct wormhole_buffers {
    struct wormhole_plugin plugin; /* state_size is that of a switch */
    uint32_t port_state_size;
    uint32_t port_state_align;
    uint32_t queue_state_size;
    uint32_t queue_state_align;
    /* Sets up a port: thresholds that depend on its link. Its state is zero. May be null. */
    void (*start_port)(const void *config, void *port, const struct wormhole_port *info);
    /* A switch, whose state begins as zero, has this port. Called once a port; nic_rate_bps is 0. May be null. */
    void (*add_port)(const void *config, void *sw, const struct wormhole_port *info);
    /* Takes bytes into the buffer: 1, or 0: the frame is dropped, and nothing has changed. */
    int32_t (*admit)(const void *config, void *sw, const void *port, void *queue, uint32_t bytes);
    /* Whether (1 or 0) the sender at the ingress must be paused now. */
    int32_t (*pauses)(const void *config, const void *sw, const void *port, const void *queue);
    /* Gives bytes back. */
    void (*release)(const void *config, void *sw, const void *port, void *queue, uint32_t bytes);
    /*
     * Whether (1 or 0) a paused sender may go on now. Asked when a frame of its queue leaves, so an empty queue MUST
     * let its sender go on, or it never will.
     */
    int32_t (*resumes)(const void *config, const void *sw, const void *port, const void *queue);
    /*
     * Whether (1 or 0) no decision about any queue could depend on what others hold, even if more_bytes more were in
     * the switch than there are. Both may be null: what passes such a switch is then always simulated.
     */
    int32_t (*is_calm)(const void *config, const void *sw, uint64_t more_bytes);
    /* At a calm moment queue becomes to, which the simulator sees to: the switch's own count follows here. */
    void (*replace)(const void *config, void *sw, const void *queue, const void *to);
};

#ifdef __cplusplus
extern "C" {
#endif

/* The one symbol that a plugin exports. Descriptors of all kinds begin with struct wormhole_plugin. */
const struct wormhole_plugin *wormhole_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
