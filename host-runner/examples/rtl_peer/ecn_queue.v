// An AXI4-Stream queue that marks ECN: while more than `threshold` beats wait, an IPv4 frame that comes in and can be
// marked leaves as "congestion experienced" (RFC 3168), with its header checksum corrected (RFC 1624).
//
// Beats are 64 bytes, byte 0 in the lowest bits; a frame begins with its Ethernet header, without VLAN tag or preamble,
// and ends with TLAST. The first beat holds all that is looked at. Frames are never dropped: when the memory is full,
// TREADY is low. A beat stays in the memory for at least one cycle, then in the output register for at least one.
module ecn_queue #(
    parameter LOG2_DEPTH = 8  // beats in the memory; the output register holds one more
) (
    input  wire                clk,
    input  wire                rst,        // synchronous
    input  wire [LOG2_DEPTH:0] threshold,  // beats

    input  wire                s_axis_tvalid,
    output wire                s_axis_tready,
    input  wire [511:0]        s_axis_tdata,
    input  wire [63:0]         s_axis_tkeep,
    input  wire                s_axis_tlast,

    output reg                 m_axis_tvalid,
    input  wire                m_axis_tready,
    output reg  [511:0]        m_axis_tdata,
    output reg  [63:0]         m_axis_tkeep,
    output reg                 m_axis_tlast,

    output reg  [31:0]         marked      // frames marked so far
);
    localparam DEPTH = 1 << LOG2_DEPTH;

    reg [576:0]            memory [0:DEPTH-1];  // TLAST, TKEEP, TDATA
    reg [LOG2_DEPTH-1:0]   head, tail;
    reg [LOG2_DEPTH:0]     count;
    reg                    in_frame;            // the next beat is not the first of its frame

    assign s_axis_tready = count != DEPTH;
    wire put  = s_axis_tvalid && s_axis_tready;
    wire take = count != 0 && (!m_axis_tvalid || m_axis_tready);

    // Fields of the first beat. Words of the IPv4 header are big-endian.
    wire [15:0] ethertype = {s_axis_tdata[8*12 +: 8], s_axis_tdata[8*13 +: 8]};
    wire [3:0]  version   = s_axis_tdata[8*14+4 +: 4];
    wire [1:0]  ecn       = s_axis_tdata[8*15 +: 2];
    wire [15:0] checksum  = {s_axis_tdata[8*24 +: 8], s_axis_tdata[8*25 +: 8]};

    // ECT(1) is 1, ECT(0) is 2: those say that the transport understands marks. 3 is the mark.
    wire capable = ethertype == 16'h0800 && version == 4 && (ecn == 1 || ecn == 2);
    wire mark    = !in_frame && capable && count > threshold;

    // The header's second byte grows by 3 - ecn, so the one's-complement sum of its words does. The checksum is the
    // complement of that sum.
    wire [16:0] sum    = {1'b0, ~checksum} + {15'b0, 2'd3 - ecn};
    wire [15:0] folded = sum[15:0] + {15'b0, sum[16]};

    reg [511:0] tdata;
    always @* begin
        tdata = s_axis_tdata;
        if (mark) begin
            tdata[8*15 +: 2] = 2'd3;
            {tdata[8*24 +: 8], tdata[8*25 +: 8]} = ~folded;
        end
    end

    always @(posedge clk) begin
        if (put) begin
            memory[tail] <= {s_axis_tlast, s_axis_tkeep, tdata};
            tail         <= tail + 1;
            in_frame     <= !s_axis_tlast;
            if (mark) marked <= marked + 1;
        end
        if (take) begin
            {m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= memory[head];
            head <= head + 1;
        end
        if (take)               m_axis_tvalid <= 1;
        else if (m_axis_tready) m_axis_tvalid <= 0;
        count <= count + {{LOG2_DEPTH{1'b0}}, put} - {{LOG2_DEPTH{1'b0}}, take};

        if (rst) begin
            {head, tail, count, in_frame, marked} <= 0;
            {m_axis_tvalid, m_axis_tlast, m_axis_tkeep, m_axis_tdata} <= 0;
        end
    end
endmodule
