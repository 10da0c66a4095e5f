// Congestion controllers of programs.
//
// Derive from CCC, override callbacks, and set UDT_CC to a CCCFactory of the class before the socket connects or listens. Each
// connection has one object. Callbacks run one at a time, on threads of the library and of the program. They must not call
// functions of namespace UDT, which then fail with EINVOP. sendCustomMsg and getPerfInfo work.

#ifndef FARHAUL_UDT_CCC_H
#define FARHAUL_UDT_CCC_H

#include "packet.h"
#include "udt.h"

class UDT_API CCC {
    friend class CUDT;

public:
    CCC();
    virtual ~CCC();

private:
    CCC(const CCC&);
    CCC& operator=(const CCC&);

public:
    // The connection is established.
    virtual void init() {}
    // The connection has ended.
    virtual void close() {}
    // New data was acknowledged up to this packet, which is the next expected one.
    virtual void onACK(int32_t) {}
    // The peer reported losses: single packets, and ranges as two words of which the first has its highest bit set.
    virtual void onLoss(const int32_t*, int) {}
    // Nothing was heard of the peer for the expiration time, with data unacknowledged.
    virtual void onTimeout() {}
    // A data packet left. Its payload is not passed on: the body is zeroes.
    virtual void onPktSent(const CPacket*) {}
    // A data packet arrived, likewise.
    virtual void onPktReceived(const CPacket*) {}
    // A user-defined packet of the peer's controller arrived. The body is in words of this host's order.
    virtual void processCustomMsg(const CPacket*) {}

protected:
    // Microseconds between acknowledgements, at most 10 000.
    void setACKTimer(int usINT);
    // An acknowledgement after so many data packets.
    void setACKInterval(int pktINT);
    // Microseconds of the expiration time.
    void setRTO(int usRTO);
    // Sends a packet of type 0x7FFF to the peer's controller.
    void sendCustomMsg(CPacket& pkt) const;
    // The figures of the connection. In a callback, those of the other direction are zero.
    const CPerfMon* getPerfInfo();
    // Copies bytes of the program to m_pcParam.
    void setUserParam(const char* param, int size);

private:
    void setMSS(int mss);
    void setMaxCWndSize(int cwnd);
    void setBandwidth(int bw);
    void setSndCurrSeqNo(int32_t seqno);
    void setRcvRate(int rcvrate);
    void setRTT(int rtt);

protected:
    const int32_t& m_iSYNInterval;  // 10 000 microseconds

    double m_dPktSndPeriod;  // the controller sets it: microseconds from packet to packet
    double m_dCWndSize;      // the controller sets it: packets

    int m_iBandwidth;        // capacity of the path, packets a second
    double m_dMaxCWndSize;   // packets
    int m_iMSS;              // bytes
    int32_t m_iSndCurrSeqNo; // the last packet sent
    int m_iRcvRate;          // packets a second that arrive at the peer
    int m_iRTT;              // microseconds

    char* m_pcParam;
    int m_iPSize;

private:
    UDTSOCKET m_UDT;
    int m_iACKPeriod;
    int m_iACKInterval;
    bool m_bUserDefinedRTO;
    int m_iRTO;
    CPerfMon m_PerfInfo;
};

// Makes controllers. The library keeps clones.
class CCCVirtualFactory {
public:
    virtual ~CCCVirtualFactory() {}

    virtual CCC* create() = 0;
    virtual CCCVirtualFactory* clone() = 0;
};

template <class T>
class CCCFactory : public CCCVirtualFactory {
public:
    virtual ~CCCFactory() {}

    virtual CCC* create() { return new T; }
    virtual CCCVirtualFactory* clone() { return new CCCFactory<T>; }
};

// UDT's own control (DAIMD), to derive from. Farhaul's default is another law: a socket has this one only if it is set.
class UDT_API CUDTCC : public CCC {
public:
    CUDTCC();

    virtual void init();
    virtual void onACK(int32_t);
    virtual void onLoss(const int32_t*, int);
    virtual void onTimeout();

private:
    void endSlowStart();

    int m_rate_interval;       // microseconds
    uint64_t m_last_increase;  // microseconds
    bool m_slow_start;
    int32_t m_last_ack;
    bool m_loss;               // since the last increase
    int32_t m_last_decrease;   // last packet sent by then
    double m_decrease_period;  // the period before it
    int m_naks;                // of this epoch
    int m_random;              // every so-manieth of them decreases
    int m_average_naks;        // of an epoch
    int m_decreases;           // of this epoch
};

#endif
