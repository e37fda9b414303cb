// External ports: frames of other models enter the fabric at one host and leave it at another. Their content stays
// here; the kernel carries a token and the number of bytes. Two models play ping-pong across a dumbbell while a flow
// of the kernel's own crosses the same bottleneck.
//
// Prints token, bytes, time of arrival and ECN mark of each frame, then the completion time of the flow.

#include <inttypes.h>

#include "must.h"

// Frames in flight, named by their index.
struct message {
    uint32_t bytes;
    uint32_t hops_left;
};

int main(void)
{
    WhPlan plan = {.struct_size = sizeof plan};
    MUST(wh_plan_defaults(&plan, WH_PLAN_KIND_DUMBBELL));
    plan.left = 2;
    plan.right = 2;
    uint8_t nodes[6];
    WhLink links[5];
    MUST(wh_plan_build(&plan, nodes, 6, links, 5));
    WhCca cca = {.struct_size = sizeof cca};
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_DCTCP));
    WhConfig config = {.struct_size = sizeof config};
    MUST(wh_config_defaults(&config, WH_PROFILE_PS));
    config.nodes = nodes;
    config.node_count = 6;
    config.links = links;
    config.link_count = 5;
    config.ccas = &cca;
    config.cca_count = 1;
    // Marking begins early: frames of the models see the flow's queue.
    config.ecn_kmin_bytes = 20000;
    config.ecn_kmax_bytes = 20000;
    void *memory = NULL;
    WhKernel *kernel = new_kernel(&config, &memory);

    // The kernel's own: host 1 to host 3.
    WhFlow flow = {.struct_size = sizeof flow};
    MUST(wh_flow_defaults(&flow));
    flow.src = 1;
    flow.dst = 3;
    flow.bytes = 1000000;
    uint32_t id = 0;
    MUST(wh_add_flow(kernel, &flow, &id));

    // The models: four messages between host 0 and host 2, sent back three times each.
    struct message messages[4] = {{64, 3}, {512, 3}, {1500, 3}, {9000, 3}};
    for (uint64_t token = 0; token < 4; token++) {
        WhFrame frame = {.struct_size = sizeof frame, .src = 0, .dst = 2, .priority = 3, .token = token};
        frame.bytes = messages[token].bytes;
        MUST(wh_inject(kernel, 1000000 * token, &frame));
    }
    for (;;) {
        uint64_t next = 0;
        MUST(wh_next_event_time(kernel, &next));
        if (next == WH_NEVER) {
            break;
        }
        uint32_t step = 0;
        MUST(wh_run_until(kernel, next, &step));
        WhFrame frame = {.struct_size = sizeof frame};
        while (wh_poll_egress(kernel, &frame) == WH_STATUS_OK) {
            printf("%" PRIu64 " %" PRIu32 " %" PRIu64 " %d\n", frame.token, frame.bytes, frame.at_ps, frame.marked);
            if (messages[frame.token].hops_left > 0) {
                messages[frame.token].hops_left--;
                WhFrame answer = {.struct_size = sizeof answer, .src = frame.dst, .dst = frame.src};
                answer.bytes = frame.bytes;
                answer.priority = frame.priority;
                answer.token = frame.token;
                MUST(wh_inject(kernel, frame.at_ps, &answer));
            }
        }
    }
    WhCompletion done = {.struct_size = sizeof done};
    MUST(wh_poll_completion(kernel, &done));
    printf("flow %" PRIu64 "\n", done.fct_ps);
    free(memory);
    return EXIT_SUCCESS;
}
