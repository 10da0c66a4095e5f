// Calls CCC objects for the Rust part: members in, callback, members out.

#include "controllers.h"

#include <stdio.h>
#include <string.h>

#include <exception>

#include "../include/udt/ccc.h"
#include "error.h"

namespace {

const int32_t SYN_INTERVAL = 10000;
const double FIRST_PERIOD = 1.0;
const double FIRST_WINDOW = 16.0;
const int CONTROL_TYPE = 0x7FFF;
const int LARGEST_PAYLOAD = 65536;

// Stands for payloads that are not passed on.
char zeroes[LARGEST_PAYLOAD];

// An exception cannot pass the library. The callback counts as returned.
template <typename Callback>
void guarded(Callback callback) noexcept {
    try {
        callback();
    } catch (const std::exception& error) {
        fprintf(stderr, "libudt: a congestion controller threw: %s\n", error.what());
    } catch (...) {
        fputs("libudt: a congestion controller threw\n", stderr);
    }
}

CCC* object(void* controller) { return static_cast<CCC*>(controller); }

}  // namespace

// The friend of CCC that may use its members.
class CUDT {
public:
    static void attach(CCC* controller, UDTSOCKET u) { controller->m_UDT = u; }

    static void show(CCC* controller, const FhView& view) {
        controller->setMSS(view.mss);
        controller->setMaxCWndSize(static_cast<int>(view.max_window));
        controller->setBandwidth(view.bandwidth);
        controller->setSndCurrSeqNo(view.sent);
        controller->setRcvRate(view.recv_rate);
        controller->setRTT(view.rtt);
    }

    static void collect(const CCC* controller, FhSettings* settings) {
        settings->period = controller->m_dPktSndPeriod;
        settings->window = controller->m_dCWndSize;
        settings->ack_period = controller->m_iACKPeriod;
        settings->ack_interval = controller->m_iACKInterval;
        settings->rto = controller->m_bUserDefinedRTO ? controller->m_iRTO : 0;
    }
};

namespace {

template <typename Callback>
void call(void* controller, const FhView* view, FhSettings* settings, Callback callback) {
    CCC* const ccc = object(controller);
    CUDT::show(ccc, *view);
    guarded([&] { callback(ccc); });
    CUDT::collect(ccc, settings);
}

void describe(CPacket& packet, const FhPacket& facts, UDTSOCKET u) {
    packet.m_iSeqNo = facts.seq;
    packet.m_iMsgNo = facts.message;
    packet.m_iTimeStamp = facts.stamp;
    packet.m_iID = u;
    packet.m_pcData = zeroes;
    packet.setLength(facts.payload < LARGEST_PAYLOAD ? facts.payload : LARGEST_PAYLOAD);
}

void* create(void* factory, int32_t socket) {
    CCC* made = nullptr;
    guarded([&] { made = static_cast<CCCVirtualFactory*>(factory)->create(); });
    if (made) {
        CUDT::attach(made, socket);
    }
    return made;
}

void destroy_factory(void* factory) {
    guarded([&] { delete static_cast<CCCVirtualFactory*>(factory); });
}

void destroy(void* controller) {
    guarded([&] { delete object(controller); });
}

void init(void* controller, const FhView* view, FhSettings* settings) {
    call(controller, view, settings, [](CCC* ccc) { ccc->init(); });
}

void close(void* controller) {
    guarded([&] { object(controller)->close(); });
}

void on_ack(void* controller, const FhView* view, int32_t seq, FhSettings* settings) {
    call(controller, view, settings, [&](CCC* ccc) { ccc->onACK(seq); });
}

void on_loss(void* controller, const FhView* view, const int32_t* list, int32_t words, FhSettings* settings) {
    call(controller, view, settings, [&](CCC* ccc) { ccc->onLoss(list, words); });
}

void on_timeout(void* controller, const FhView* view, FhSettings* settings) {
    call(controller, view, settings, [](CCC* ccc) { ccc->onTimeout(); });
}

void each(void* controller, const FhView* view, const FhPacket* packets, size_t count, FhSettings* settings,
          void (CCC::*callback)(const CPacket*)) {
    call(controller, view, settings, [&](CCC* ccc) {
        CPacket packet;
        for (size_t i = 0; i < count; ++i) {
            describe(packet, packets[i], 0);
            (ccc->*callback)(&packet);
        }
    });
}

void on_sent(void* controller, const FhView* view, const FhPacket* packets, size_t count, FhSettings* settings) {
    each(controller, view, packets, count, settings, &CCC::onPktSent);
}

void on_received(void* controller, const FhView* view, const FhPacket* packets, size_t count, FhSettings* settings) {
    each(controller, view, packets, count, settings, &CCC::onPktReceived);
}

void on_custom(void* controller, const FhView* view, int32_t kind, uint8_t* body, int32_t bytes, FhSettings* settings) {
    call(controller, view, settings, [&](CCC* ccc) {
        CPacket packet;
        packet.pack(CONTROL_TYPE, &kind, body, bytes);
        ccc->processCustomMsg(&packet);
    });
}

const FhCalls CALLS = {create,  destroy_factory, destroy, init,        close,    on_ack,
                       on_loss, on_timeout,      on_sent, on_received, on_custom};

}  // namespace

FhOutcome set_controller(UDTSOCKET u, const void* factory) {
    const FhOutcome taken = fh_udt_takes_controller(u);
    if (taken.code != 0) {
        return taken;
    }
    CCCVirtualFactory* clone = nullptr;
    if (factory) {
        // Programs give a pointer to their own, which only its clone function needs.
        guarded([&] { clone = const_cast<CCCVirtualFactory*>(static_cast<const CCCVirtualFactory*>(factory))->clone(); });
    }
    return fh_udt_set_controller(u, clone, &CALLS);
}

CCC::CCC()
    : m_iSYNInterval(SYN_INTERVAL),
      m_dPktSndPeriod(FIRST_PERIOD),
      m_dCWndSize(FIRST_WINDOW),
      m_iBandwidth(1),
      m_dMaxCWndSize(0),
      m_iMSS(0),
      m_iSndCurrSeqNo(0),
      m_iRcvRate(FIRST_WINDOW),
      m_iRTT(0),
      m_pcParam(nullptr),
      m_iPSize(0),
      m_UDT(0),
      m_iACKPeriod(0),
      m_iACKInterval(0),
      m_bUserDefinedRTO(false),
      m_iRTO(-1),
      m_PerfInfo() {}

CCC::~CCC() { delete[] m_pcParam; }

void CCC::setACKTimer(int usINT) { m_iACKPeriod = usINT > m_iSYNInterval ? m_iSYNInterval : usINT; }
void CCC::setACKInterval(int pktINT) { m_iACKInterval = pktINT; }

void CCC::setRTO(int usRTO) {
    m_bUserDefinedRTO = true;
    m_iRTO = usRTO;
}

void CCC::sendCustomMsg(CPacket& pkt) const {
    if (pkt.getFlag() == 1 && pkt.getType() == CONTROL_TYPE) {
        const uint8_t* const body = reinterpret_cast<const uint8_t*>(pkt.m_pcData);
        fh_udt_send_custom(m_UDT, static_cast<uint16_t>(pkt.getExtendedType()), body, body ? pkt.getLength() : 0);
    }
}

const CPerfMon* CCC::getPerfInfo() {
    fh_udt_perfmon(m_UDT, &m_PerfInfo, false);
    return &m_PerfInfo;
}

void CCC::setMSS(int mss) { m_iMSS = mss; }
void CCC::setBandwidth(int bw) { m_iBandwidth = bw; }
void CCC::setSndCurrSeqNo(int32_t seqno) { m_iSndCurrSeqNo = seqno; }
void CCC::setRcvRate(int rcvrate) { m_iRcvRate = rcvrate; }
void CCC::setMaxCWndSize(int cwnd) { m_dMaxCWndSize = cwnd; }
void CCC::setRTT(int rtt) { m_iRTT = rtt; }

void CCC::setUserParam(const char* param, int size) {
    char* const copy = new char[static_cast<size_t>(size > 0 ? size : 0)];
    if (size > 0) {
        memcpy(copy, param, static_cast<size_t>(size));
    }
    delete[] m_pcParam;
    m_pcParam = copy;
    m_iPSize = size;
}
