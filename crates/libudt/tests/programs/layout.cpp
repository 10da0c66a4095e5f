// Prints sizes, offsets and numbers of a library's headers. Compiled with two sets of headers, it compares them.

#include <stddef.h>

#include <cstdio>

#include <ccc.h>
#include <packet.h>
#include <udt.h>

#define SIZE(type) std::printf("sizeof " #type " %zu\n", sizeof(type))
#define NUMBER(value) std::printf(#value " %d\n", static_cast<int>(value))
#define PERF(member) std::printf("CPerfMon " #member " %zu\n", offsetof(CPerfMon, member))

// Shows what CCC shows to controllers. The private members are behind the last of these, and in the size.
class Shown : public CCC {
public:
    template <typename Member>
    size_t at(Member& member) const {
        return static_cast<size_t>(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(this));
    }

    void print() {
        std::printf("CCC period %zu window %zu bandwidth %zu maximum %zu\n", at(m_dPktSndPeriod), at(m_dCWndSize),
                    at(m_iBandwidth), at(m_dMaxCWndSize));
        std::printf("CCC mss %zu sequence %zu rate %zu rtt %zu\n", at(m_iMSS), at(m_iSndCurrSeqNo), at(m_iRcvRate), at(m_iRTT));
        std::printf("CCC parameter %zu size %zu\n", at(m_pcParam), at(m_iPSize));
        std::printf("CCC first values %g %g %d %d\n", m_dPktSndPeriod, m_dCWndSize, m_iSYNInterval, m_iPSize);
    }
};

int main() {
    SIZE(CUDTException);
    SIZE(CPerfMon);
    SIZE(CCC);
    SIZE(CPacket);
    SIZE(CUDTCC);
    SIZE(CCCVirtualFactory);
    SIZE(UDT::UDSET);
    PERF(msTimeStamp);
    PERF(pktSentTotal);
    PERF(pktRecvTotal);
    PERF(pktSndLossTotal);
    PERF(pktRcvLossTotal);
    PERF(pktRetransTotal);
    PERF(pktSentACKTotal);
    PERF(pktRecvACKTotal);
    PERF(pktSentNAKTotal);
    PERF(pktRecvNAKTotal);
    PERF(usSndDurationTotal);
    PERF(pktSent);
    PERF(pktRecv);
    PERF(pktSndLoss);
    PERF(pktRcvLoss);
    PERF(pktRetrans);
    PERF(pktSentACK);
    PERF(pktRecvACK);
    PERF(pktSentNAK);
    PERF(pktRecvNAK);
    PERF(mbpsSendRate);
    PERF(mbpsRecvRate);
    PERF(usSndDuration);
    PERF(usPktSndPeriod);
    PERF(pktFlowWindow);
    PERF(pktCongestionWindow);
    PERF(pktFlightSize);
    PERF(msRTT);
    PERF(mbpsBandwidth);
    PERF(byteAvailSndBuf);
    PERF(byteAvailRcvBuf);
    NUMBER(UDT_EPOLL_IN);
    NUMBER(UDT_EPOLL_OUT);
    NUMBER(UDT_EPOLL_ERR);
    NUMBER(INIT);
    NUMBER(CONNECTED);
    NUMBER(NONEXIST);
    NUMBER(UDT_MSS);
    NUMBER(UDT_CC);
    NUMBER(UDP_RCVBUF);
    NUMBER(UDT_RENDEZVOUS);
    NUMBER(UDT_REUSEADDR);
    NUMBER(UDT_RCVDATA);
    NUMBER(UDT::INVALID_SOCK);
    NUMBER(UDT::ERROR);
    NUMBER(CUDTException::SUCCESS);
    NUMBER(CUDTException::ECONNSETUP);
    NUMBER(CUDTException::ENOSERVER);
    NUMBER(CUDTException::ECONNREJ);
    NUMBER(CUDTException::ESOCKFAIL);
    NUMBER(CUDTException::ESECFAIL);
    NUMBER(CUDTException::ECONNFAIL);
    NUMBER(CUDTException::ECONNLOST);
    NUMBER(CUDTException::ENOCONN);
    NUMBER(CUDTException::ERESOURCE);
    NUMBER(CUDTException::ETHREAD);
    NUMBER(CUDTException::ENOBUF);
    NUMBER(CUDTException::EFILE);
    NUMBER(CUDTException::EINVRDOFF);
    NUMBER(CUDTException::ERDPERM);
    NUMBER(CUDTException::EINVWROFF);
    NUMBER(CUDTException::EWRPERM);
    NUMBER(CUDTException::EINVOP);
    NUMBER(CUDTException::EBOUNDSOCK);
    NUMBER(CUDTException::ECONNSOCK);
    NUMBER(CUDTException::EINVPARAM);
    NUMBER(CUDTException::EINVSOCK);
    NUMBER(CUDTException::EUNBOUNDSOCK);
    NUMBER(CUDTException::ENOLISTEN);
    NUMBER(CUDTException::ERDVNOSERV);
    NUMBER(CUDTException::ERDVUNBOUND);
    NUMBER(CUDTException::ESTREAMILL);
    NUMBER(CUDTException::EDGRAMILL);
    NUMBER(CUDTException::EDUPLISTEN);
    NUMBER(CUDTException::ELARGEMSG);
    NUMBER(CUDTException::EINVPOLLID);
    NUMBER(CUDTException::EASYNCFAIL);
    NUMBER(CUDTException::EASYNCSND);
    NUMBER(CUDTException::EASYNCRCV);
    NUMBER(CUDTException::ETIMEOUT);
    NUMBER(CUDTException::EPEERERR);
    NUMBER(CUDTException::EUNKNOWN);
    Shown().print();
    return 0;
}
