// The queue under Verilator behind a C interface: cycles are run a quantum at a time, so that the simulator on the
// other side crosses it once a quantum, not once a cycle. The structs are those of axis.rs.
#include "Vecn_queue.h"
#include "verilated.h"
#include <cstdint>
#include <cstring>

extern "C" {

// A beat to be offered to the queue from a cycle on, until it is taken. Beats are offered in order.
struct rtl_offer {
    uint64_t not_before;
    uint64_t keep;
    uint8_t last;
    uint8_t pad[7];
    uint8_t data[64];
};

// What the queue's pins say at the end of a cycle.
struct rtl_pins {
    uint64_t keep;
    uint32_t marked;
    uint8_t s_ready;
    uint8_t m_valid;
    uint8_t m_last;
    uint8_t pad;
    uint8_t data[64];
};
}

static_assert(sizeof(rtl_offer) == 88 && sizeof(rtl_pins) == 80, "as in axis.rs");
// A wide signal is an array of 32-bit words, the lowest first: on this machine the bytes in order.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "beats are copied as bytes");

namespace {

struct Rtl {
    VerilatedContext context;
    Vecn_queue top{&context};
    uint64_t cycle = 0;

    void tick() {
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
    }
};

} // namespace

extern "C" {

// A queue after its reset, which takes no cycle of the count; null if there is no memory for it.
Rtl *rtl_new(uint32_t threshold) try {
    Rtl *rtl = new Rtl;
    rtl->top.threshold = threshold;
    rtl->top.rst = 1;
    rtl->tick();
    rtl->top.rst = 0;
    return rtl;
} catch (...) {
    return nullptr;
}

// Runs `cycles` cycles. `ready` has a byte a cycle: whether what the queue gives is taken. Writes the pins of each
// cycle, and returns how many of the offered beats the queue has taken: the first ones.
size_t rtl_run(Rtl *rtl, size_t cycles, const rtl_offer *offers, size_t offer_count, const uint8_t *ready,
               rtl_pins *pins) {
    Vecn_queue &top = rtl->top;
    size_t taken = 0;
    for (size_t i = 0; i < cycles; ++i, ++rtl->cycle) {
        const bool valid = taken < offer_count && offers[taken].not_before <= rtl->cycle;
        top.s_axis_tvalid = valid;
        if (valid) {
            const rtl_offer &offer = offers[taken];
            std::memcpy(&top.s_axis_tdata[0], offer.data, sizeof offer.data);
            top.s_axis_tkeep = offer.keep;
            top.s_axis_tlast = offer.last;
        }
        top.m_axis_tready = ready[i];
        top.eval();

        rtl_pins &out = pins[i];
        out = rtl_pins{top.m_axis_tkeep, top.marked, top.s_axis_tready, top.m_axis_tvalid, top.m_axis_tlast, 0, {}};
        std::memcpy(out.data, &top.m_axis_tdata[0], sizeof out.data);
        taken += valid && top.s_axis_tready;
        rtl->tick();
    }
    return taken;
}

void rtl_free(Rtl *rtl) {
    rtl->top.final();
    delete rtl;
}
}
