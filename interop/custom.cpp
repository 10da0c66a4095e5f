#include "custom.h"

#if __has_include(<udt/ccc.h>)
#include <udt/ccc.h>
#else
#include <ccc.h>
#endif

#include <atomic>

namespace {

constexpr double SEND_PERIOD_US = 100;
constexpr double WINDOW_PACKETS = 8192;

std::atomic<std::uint64_t> count{0};

// The library keeps its own controller and the making of packets to itself, so this one paces by the clock and sends what
// it is given.
class Echo : public CCC {
public:
    void init() override {
        m_dPktSndPeriod = SEND_PERIOD_US;
        m_dCWndSize = WINDOW_PACKETS;
    }

    // The packet is libudt's own copy, and nobody looks at it after this call.
    void processCustomMsg(const CPacket* packet) override {
        ++count;
        sendCustomMsg(const_cast<CPacket&>(*packet));
    }
};

}  // namespace

void custom::echo(UDTSOCKET socket) {
    CCCFactory<Echo> factory;
    if (UDT::setsockopt(socket, 0, UDT_CC, &factory, sizeof factory) == UDT::ERROR) {
        throw_udt_error("--echo-custom");
    }
}

std::uint64_t custom::echoed() { return count; }
