// The sockets of UDT4 in C++: the interface of libudt 4.11, on Farhaul.
//
// Programs written for libudt compile with this header and link with -ludt. Programs that were built with libudt's own header
// run as they are. The page "libudt's programs" of Farhaul's book tells what differs.
//
// Functions return UDT::ERROR or UDT::INVALID_SOCK if they fail. The calling thread's UDT::getlasterror() then says why.

#ifndef FARHAUL_UDT_H
#define FARHAUL_UDT_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#define UDT_API __attribute__((visibility("default")))

// A socket of UDT, and descriptors of the system.
typedef int UDTSOCKET;
typedef int SYSSOCKET;
typedef SYSSOCKET UDPSOCKET;

// Sets of sockets, for select.
typedef std::set<UDTSOCKET> ud_set;
#define UD_ZERO(uset) ((uset)->clear())
#define UD_SET(u, uset) ((uset)->insert(u))
#define UD_CLR(u, uset) ((uset)->erase(u))
#define UD_ISSET(u, uset) ((uset)->count(u) != 0)

// Events of epoll, in the bits of Linux.
enum EPOLLOpt {
    UDT_EPOLL_IN = 0x1,
    UDT_EPOLL_OUT = 0x4,
    UDT_EPOLL_ERR = 0x8
};

// States of a socket.
enum UDTSTATUS {
    INIT = 1,
    OPENED = 2,
    LISTENING = 3,
    CONNECTING = 4,
    CONNECTED = 5,
    BROKEN = 6,
    CLOSING = 7,
    CLOSED = 8,
    NONEXIST = 9
};

// Options of a socket. The type of the value is behind each.
enum UDTOpt {
    UDT_MSS = 0,          // int: largest packet in bytes, headers of IP and UDP included
    UDT_SNDSYN = 1,       // bool: whether sending waits
    UDT_RCVSYN = 2,       // bool: whether receiving, accepting and connecting wait
    UDT_CC = 3,           // set: CCCFactory<T>*; get: CCC**
    UDT_FC = 4,           // int: largest flow window in packets
    UDT_SNDBUF = 5,       // int: send buffer in bytes
    UDT_RCVBUF = 6,       // int: receive buffer in bytes
    UDT_LINGER = 7,       // struct linger: how long close waits
    UDP_SNDBUF = 8,       // int: send buffer of the UDP socket in bytes
    UDP_RCVBUF = 9,       // int: receive buffer of the UDP socket in bytes
    UDT_MAXMSG = 10,      // not supported
    UDT_MSGTTL = 11,      // not supported
    UDT_RENDEZVOUS = 12,  // bool: whether connecting meets a peer that connects as well
    UDT_SNDTIMEO = 13,    // int: longest wait of sending in milliseconds, -1 for ever
    UDT_RCVTIMEO = 14,    // int: longest wait of receiving in milliseconds, -1 for ever
    UDT_REUSEADDR = 15,   // bool: whether sockets may share a UDP port
    UDT_MAXBW = 16,       // int64_t: cap on the sending rate in bytes a second, -1 for none
    UDT_STATE = 17,       // get int: the UDTSTATUS
    UDT_EVENT = 18,       // get int: the EPOLLOpt that hold
    UDT_SNDDATA = 19,     // get int: packets in the send buffer
    UDT_RCVDATA = 20      // get int: packets that can be read
};

// Figures of a connection. A name with "Total" counts from the begin, the same name without it from the last clear.
struct CPerfMon {
    int64_t msTimeStamp;
    int64_t pktSentTotal;     // retransmissions included
    int64_t pktRecvTotal;     // duplicates included
    int pktSndLossTotal;      // as the peer reported
    int pktRcvLossTotal;
    int pktRetransTotal;
    int pktSentACKTotal;      // without light ones, as are the next
    int pktRecvACKTotal;
    int pktSentNAKTotal;
    int pktRecvNAKTotal;
    int64_t usSndDurationTotal;  // time with data to send

    int64_t pktSent;
    int64_t pktRecv;
    int pktSndLoss;
    int pktRcvLoss;
    int pktRetrans;
    int pktSentACK;
    int pktRecvACK;
    int pktSentNAK;
    int pktRecvNAK;
    double mbpsSendRate;
    double mbpsRecvRate;
    int64_t usSndDuration;

    double usPktSndPeriod;    // the present, from here on
    int pktFlowWindow;
    int pktCongestionWindow;
    int pktFlightSize;
    double msRTT;
    double mbpsBandwidth;     // estimated capacity of the path
    int byteAvailSndBuf;
    int byteAvailRcvBuf;
};

// An error of a call. The code is 1000 * category + reason.
class UDT_API CUDTException {
public:
    // Without an error number of the system, that of errno is kept.
    CUDTException(int major = 0, int minor = 0, int err = -1);
    CUDTException(const CUDTException& other);
    CUDTException& operator=(const CUDTException& other) = default;
    virtual ~CUDTException();

    virtual const char* getErrorMessage();
    virtual int getErrorCode() const;
    virtual void clear();

private:
    int m_iMajor;
    int m_iMinor;
    int m_iErrno;
    std::string m_strMsg;
    std::string m_strAPI;
    std::string m_strDebug;

public:
    static const int SUCCESS;
    static const int ECONNSETUP;    // 1000: the connection cannot be set up
    static const int ENOSERVER;     // nobody answers
    static const int ECONNREJ;      // the peer refuses
    static const int ESOCKFAIL;     // the UDP socket cannot be opened
    static const int ESECFAIL;      // the peer is not whom this side called
    static const int ECONNFAIL;     // 2000
    static const int ECONNLOST;     // the connection is over
    static const int ENOCONN;       // the socket is not connected
    static const int ERESOURCE;     // 3000: the system has no more resources
    static const int ETHREAD;       // no thread
    static const int ENOBUF;        // no memory
    static const int EFILE;         // 4000: a file
    static const int EINVRDOFF;     // no such offset to read from
    static const int ERDPERM;       // it cannot be read
    static const int EINVWROFF;     // no such offset to write to
    static const int EWRPERM;       // it cannot be written
    static const int EINVOP;        // 5000: the call is not supported
    static const int EBOUNDSOCK;    // the socket is bound
    static const int ECONNSOCK;     // the socket is connected
    static const int EINVPARAM;     // an argument is wrong
    static const int EINVSOCK;      // there is no such socket
    static const int EUNBOUNDSOCK;  // the socket is not bound
    static const int ENOLISTEN;     // the socket does not listen
    static const int ERDVNOSERV;    // a socket for rendezvous cannot listen
    static const int ERDVUNBOUND;   // a rendezvous needs a bound socket
    static const int ESTREAMILL;    // a call for messages on a stream
    static const int EDGRAMILL;     // a call for streams on a socket of messages
    static const int EDUPLISTEN;    // another socket of the port listens
    static const int ELARGEMSG;     // the message exceeds the send buffer
    static const int EINVPOLLID;    // there is no such epoll
    static const int EASYNCFAIL;    // 6000: nothing now
    static const int EASYNCSND;     // no room to send
    static const int EASYNCRCV;     // nothing to receive
    static const int ETIMEOUT;      // the time-out passed
    static const int EPEERERR;      // 7000: the peer has signalled an error
    static const int EUNKNOWN;      // -1
};

// Names of the system's headers that clash with those below.
#undef ERROR

namespace UDT {

typedef CUDTException ERRORINFO;
typedef UDTOpt SOCKOPT;
typedef CPerfMon TRACEINFO;
typedef ud_set UDSET;

UDT_API extern const UDTSOCKET INVALID_SOCK;
UDT_API extern const int ERROR;

UDT_API int startup();
UDT_API int cleanup();
UDT_API UDTSOCKET socket(int af, int type, int protocol);
UDT_API int bind(UDTSOCKET u, const struct sockaddr* name, int namelen);
UDT_API int bind2(UDTSOCKET u, UDPSOCKET udpsock);
UDT_API int listen(UDTSOCKET u, int backlog);
UDT_API UDTSOCKET accept(UDTSOCKET u, struct sockaddr* addr, int* addrlen);
UDT_API int connect(UDTSOCKET u, const struct sockaddr* name, int namelen);
UDT_API int close(UDTSOCKET u);
UDT_API int getpeername(UDTSOCKET u, struct sockaddr* name, int* namelen);
UDT_API int getsockname(UDTSOCKET u, struct sockaddr* name, int* namelen);
UDT_API int getsockopt(UDTSOCKET u, int level, SOCKOPT optname, void* optval, int* optlen);
UDT_API int setsockopt(UDTSOCKET u, int level, SOCKOPT optname, const void* optval, int optlen);
UDT_API int send(UDTSOCKET u, const char* buf, int len, int flags);
UDT_API int recv(UDTSOCKET u, char* buf, int len, int flags);
UDT_API int sendmsg(UDTSOCKET u, const char* buf, int len, int ttl = -1, bool inorder = false);
UDT_API int recvmsg(UDTSOCKET u, char* buf, int len);
UDT_API int64_t sendfile(UDTSOCKET u, std::fstream& ifs, int64_t& offset, int64_t size, int block = 364000);
UDT_API int64_t recvfile(UDTSOCKET u, std::fstream& ofs, int64_t& offset, int64_t size, int block = 7280000);
UDT_API int64_t sendfile2(UDTSOCKET u, const char* path, int64_t* offset, int64_t size, int block = 364000);
UDT_API int64_t recvfile2(UDTSOCKET u, const char* path, int64_t* offset, int64_t size, int block = 7280000);

UDT_API int select(int nfds, UDSET* readfds, UDSET* writefds, UDSET* exceptfds, const struct timeval* timeout);
UDT_API int selectEx(const std::vector<UDTSOCKET>& fds, std::vector<UDTSOCKET>* readfds,
                     std::vector<UDTSOCKET>* writefds, std::vector<UDTSOCKET>* exceptfds, int64_t msTimeOut);

UDT_API int epoll_create();
UDT_API int epoll_add_usock(int eid, UDTSOCKET u, const int* events = NULL);
UDT_API int epoll_add_ssock(int eid, SYSSOCKET s, const int* events = NULL);
UDT_API int epoll_remove_usock(int eid, UDTSOCKET u);
UDT_API int epoll_remove_ssock(int eid, SYSSOCKET s);
UDT_API int epoll_wait(int eid, std::set<UDTSOCKET>* readfds, std::set<UDTSOCKET>* writefds, int64_t msTimeOut,
                       std::set<SYSSOCKET>* lrfds = NULL, std::set<SYSSOCKET>* wrfds = NULL);
UDT_API int epoll_wait2(int eid, UDTSOCKET* readfds, int* rnum, UDTSOCKET* writefds, int* wnum, int64_t msTimeOut,
                        SYSSOCKET* lrfds = NULL, int* lrnum = NULL, SYSSOCKET* lwfds = NULL, int* lwnum = NULL);
UDT_API int epoll_release(int eid);

UDT_API ERRORINFO& getlasterror();
UDT_API int getlasterror_code();
UDT_API const char* getlasterror_desc();
UDT_API int perfmon(UDTSOCKET u, TRACEINFO* perf, bool clear = true);
UDT_API UDTSTATUS getsockstate(UDTSOCKET u);

// Later versions of libudt also take lengths as socklen_t, and a descriptor in bind.

inline int bind(UDTSOCKET u, UDPSOCKET udpsock) { return bind2(u, udpsock); }

template <typename Length>
UDTSOCKET accept(UDTSOCKET u, struct sockaddr* addr, Length* addrlen) {
    int length = addrlen ? static_cast<int>(*addrlen) : 0;
    const UDTSOCKET accepted = accept(u, addr, addrlen ? &length : static_cast<int*>(NULL));
    if (addrlen) *addrlen = static_cast<Length>(length);
    return accepted;
}

template <typename Length>
int getpeername(UDTSOCKET u, struct sockaddr* name, Length* namelen) {
    int length = static_cast<int>(*namelen);
    const int result = getpeername(u, name, &length);
    *namelen = static_cast<Length>(length);
    return result;
}

template <typename Length>
int getsockname(UDTSOCKET u, struct sockaddr* name, Length* namelen) {
    int length = static_cast<int>(*namelen);
    const int result = getsockname(u, name, &length);
    *namelen = static_cast<Length>(length);
    return result;
}

template <typename Length>
int getsockopt(UDTSOCKET u, int level, SOCKOPT optname, void* optval, Length* optlen) {
    int length = static_cast<int>(*optlen);
    const int result = getsockopt(u, level, optname, optval, &length);
    *optlen = static_cast<Length>(length);
    return result;
}

}  // namespace UDT

#endif
