// The host keeps time: a program with events of its own asks the kernel when it wants to run next, and never lets it
// run past its own next event. Here the host's events start flows from three hosts to a fourth, 5 us apart.
//
// Prints the token, start and completion time of each flow, in picoseconds.

#include <inttypes.h>

#include "must.h"

#define HOSTS 4
#define STARTS 3
#define STEP_PS UINT64_C(5000000)

int main(void)
{
    if (wh_abi_version() != WH_ABI_VERSION) {
        fprintf(stderr, "the library is of another version than the header\n");
        return EXIT_FAILURE;
    }

    // Four hosts on a switch, at 100 Gb/s and 1 us.
    uint8_t nodes[HOSTS + 1] = {0};
    WhLink links[HOSTS] = {{0}};
    nodes[HOSTS] = WH_NODE_KIND_SWITCH;
    for (uint32_t host = 0; host < HOSTS; host++) {
        links[host] = (WhLink){.a = host, .b = HOSTS, .rate_bps = 100000000000, .delay_ps = 1000000};
    }
    WhCca cca = {.struct_size = sizeof cca};
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_HPCC));

    WhConfig config = {.struct_size = sizeof config};
    MUST(wh_config_defaults(&config, WH_PROFILE_PS));
    config.nodes = nodes;
    config.node_count = HOSTS + 1;
    config.links = links;
    config.link_count = HOSTS;
    config.ccas = &cca;
    config.cca_count = 1;
    void *memory = NULL;
    WhKernel *kernel = new_kernel(&config, &memory);

    uint64_t next_start = 0;
    uint32_t started = 0;
    for (;;) {
        uint64_t next = 0;
        MUST(wh_next_event_time(kernel, &next));
        uint64_t host_next = started < STARTS ? next_start : WH_NEVER;
        if (next == WH_NEVER && host_next == WH_NEVER) {
            break;
        }
        uint64_t now = next < host_next ? next : host_next;

        uint32_t step = 0;
        MUST(wh_run_until(kernel, now, &step));
        WhCompletion done = {.struct_size = sizeof done};
        while (wh_poll_completion(kernel, &done) == WH_STATUS_OK) {
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", done.token, done.start_ps, done.fct_ps);
        }

        if (now == host_next) {
            WhFlow flow = {.struct_size = sizeof flow};
            MUST(wh_flow_defaults(&flow));
            flow.src = started;
            flow.dst = HOSTS - 1;
            flow.bytes = 500000;
            flow.start_ps = now;
            flow.token = 100 + started;
            uint32_t id = 0;
            MUST(wh_add_flow(kernel, &flow, &id));
            started++;
            next_start += STEP_PS;
        }
    }
    free(memory);
    return EXIT_SUCCESS;
}
