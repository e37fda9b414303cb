// A channel of ns-3 whose inside is a fabric simulated by the Wormhole kernel, and the net devices at its hosts.

#ifndef WORMHOLE_CHANNEL_H
#define WORMHOLE_CHANNEL_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"

#include "wormhole.h"

class WormholeNetDevice;

// A fabric of hosts, switches and links. Devices are attached to its hosts.
class WormholeChannel : public ns3::Channel
{
  public:
    static ns3::TypeId GetTypeId();

    // Builds the fabric; before anything else.
    void Build(const std::vector<std::uint8_t>& nodes, const std::vector<WhLink>& links);

    // Puts a device at a host, which gets frames for this address.
    void Attach(ns3::Ptr<WormholeNetDevice> device, std::uint32_t host, ns3::Ipv4Address address);

    // Takes a packet of a device in. False if it has nowhere to go or the kernel has no room.
    bool Inject(std::uint32_t src, ns3::Ipv4Address dst, ns3::Ptr<ns3::Packet> packet, std::uint16_t protocol);

    std::size_t GetNDevices() const override;
    ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;

  private:
    // A packet whose frame is in the fabric.
    struct InFlight
    {
        ns3::Ptr<ns3::Packet> packet;
        std::uint16_t protocol;
    };

    struct Free
    {
        void operator()(void* memory) const;
    };

    void DoDispose() override;
    void Wake();
    void Arm();
    void Deliver();

    std::unique_ptr<void, Free> m_memory;
    WhKernel* m_kernel = nullptr;
    std::vector<ns3::Ptr<WormholeNetDevice>> m_devices;
    std::map<std::uint32_t, ns3::Ptr<WormholeNetDevice>> m_byHost;
    std::map<ns3::Ipv4Address, std::uint32_t> m_hosts;
    std::vector<InFlight> m_inFlight;
    std::vector<std::uint64_t> m_freeTokens;
    ns3::EventId m_wake;
};

// A host's NIC: frames of IPv4 packets go straight into the fabric.
class WormholeNetDevice : public ns3::NetDevice
{
  public:
    static ns3::TypeId GetTypeId();

    void SetChannel(ns3::Ptr<WormholeChannel> channel, std::uint32_t host);

    // A frame has come.
    void Receive(ns3::Ptr<ns3::Packet> packet, std::uint16_t protocol, ns3::Address from);

    void SetIfIndex(std::uint32_t index) override;
    std::uint32_t GetIfIndex() const override;
    ns3::Ptr<ns3::Channel> GetChannel() const override;
    void SetAddress(ns3::Address address) override;
    ns3::Address GetAddress() const override;
    bool SetMtu(std::uint16_t mtu) override;
    std::uint16_t GetMtu() const override;
    bool IsLinkUp() const override;
    void AddLinkChangeCallback(ns3::Callback<void> callback) override;
    bool IsBroadcast() const override;
    ns3::Address GetBroadcast() const override;
    bool IsMulticast() const override;
    ns3::Address GetMulticast(ns3::Ipv4Address group) const override;
    ns3::Address GetMulticast(ns3::Ipv6Address group) const override;
    bool IsBridge() const override;
    bool IsPointToPoint() const override;
    bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& to, std::uint16_t protocol) override;
    bool SendFrom(ns3::Ptr<ns3::Packet> packet,
                  const ns3::Address& from,
                  const ns3::Address& to,
                  std::uint16_t protocol) override;
    ns3::Ptr<ns3::Node> GetNode() const override;
    void SetNode(ns3::Ptr<ns3::Node> node) override;
    bool NeedsArp() const override;
    void SetReceiveCallback(ReceiveCallback callback) override;
    void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override;
    bool SupportsSendFrom() const override;

  private:
    void DoDispose() override;

    ns3::Ptr<WormholeChannel> m_channel;
    ns3::Ptr<ns3::Node> m_node;
    ns3::Mac48Address m_address = ns3::Mac48Address::Allocate();
    ReceiveCallback m_receive;
    std::uint32_t m_host = 0;
    std::uint32_t m_index = 0;
    std::uint16_t m_mtu = 1500;
};

#endif
