// CUDTException and the last error of each thread.

#include "error.h"

#include <errno.h>
#include <string.h>

#include "../include/udt/udt.h"

namespace {

const int CATEGORY = 1000;

// The last error of this thread. Programs call the library from destructors of their own, after those of the thread have run. So
// the pointer, which has no destructor, tells whether the error is alive.
thread_local CUDTException* last_error = nullptr;

struct Forget {
    ~Forget() {
        delete last_error;
        last_error = nullptr;
    }
};

CUDTException& last() {
    if (!last_error) {
        last_error = new CUDTException;
        thread_local Forget forget;
        static_cast<void>(&forget);
    }
    return *last_error;
}

const char* text(int code) {
    switch (code) {
        case 0: return "No error";
        case 1000: return "Cannot connect";
        case 1001: return "Cannot connect: no answer within the time limit";
        case 1002: return "Cannot connect: the peer refused";
        case 1003: return "Cannot connect: the UDP socket cannot be opened";
        case 1004: return "Cannot connect: the answer came from somebody else";
        case 2000: return "The connection failed";
        case 2001: return "The connection is over";
        case 2002: return "The socket is not connected";
        case 3000: return "The system is out of resources";
        case 3001: return "The system is out of resources: no thread can be started";
        case 3002: return "The system is out of resources: no memory is left";
        case 4000: return "File error";
        case 4001: return "File error: the file cannot be read from this offset";
        case 4002: return "File error: the file cannot be read";
        case 4003: return "File error: the file cannot be written from this offset";
        case 4004: return "File error: the file cannot be written";
        case 5000: return "Not supported";
        case 5001: return "Not supported: the socket is bound";
        case 5002: return "Not supported: the socket is connected";
        case 5003: return "Not supported: an argument is out of its range";
        case 5004: return "Not supported: there is no such socket";
        case 5005: return "Not supported: the socket is not bound";
        case 5006: return "Not supported: the socket does not listen";
        case 5007: return "Not supported: a socket for rendezvous cannot listen";
        case 5008: return "Not supported: a socket for rendezvous must be bound first";
        case 5009: return "Not supported: a call for messages on a stream";
        case 5010: return "Not supported: a call for streams on a socket of messages";
        case 5011: return "Not supported: another socket listens on this port";
        case 5012: return "Not supported: the message is longer than the send buffer";
        case 5013: return "Not supported: there is no such epoll";
        case 6000: return "Nothing can be done now without waiting";
        case 6001: return "Nothing can be sent now without waiting";
        case 6002: return "Nothing can be received now without waiting";
        case 6003: return "The time limit of the call passed";
        case 7000: return "The peer signalled an error";
        default: return "Unknown error";
    }
}

}  // namespace

CUDTException::CUDTException(int major, int minor, int err)
    : m_iMajor(major), m_iMinor(minor), m_iErrno(err == -1 ? errno : err) {}

CUDTException::CUDTException(const CUDTException& other) = default;

CUDTException::~CUDTException() {}

const char* CUDTException::getErrorMessage() {
    m_strMsg = text(getErrorCode());
    if (m_iMajor != 0 && m_iErrno > 0) {
        char room[256];
        // The GNU form returns the text, wherever it is.
        m_strMsg += std::string(": ") + strerror_r(m_iErrno, room, sizeof room);
    }
    m_strMsg += ".";
    return m_strMsg.c_str();
}

int CUDTException::getErrorCode() const { return m_iMajor * CATEGORY + m_iMinor; }

void CUDTException::clear() {
    m_iMajor = 0;
    m_iMinor = 0;
    m_iErrno = 0;
}

const int CUDTException::SUCCESS = 0;
const int CUDTException::ECONNSETUP = 1000;
const int CUDTException::ENOSERVER = 1001;
const int CUDTException::ECONNREJ = 1002;
const int CUDTException::ESOCKFAIL = 1003;
const int CUDTException::ESECFAIL = 1004;
const int CUDTException::ECONNFAIL = 2000;
const int CUDTException::ECONNLOST = 2001;
const int CUDTException::ENOCONN = 2002;
const int CUDTException::ERESOURCE = 3000;
const int CUDTException::ETHREAD = 3001;
const int CUDTException::ENOBUF = 3002;
const int CUDTException::EFILE = 4000;
const int CUDTException::EINVRDOFF = 4001;
const int CUDTException::ERDPERM = 4002;
const int CUDTException::EINVWROFF = 4003;
const int CUDTException::EWRPERM = 4004;
const int CUDTException::EINVOP = 5000;
const int CUDTException::EBOUNDSOCK = 5001;
const int CUDTException::ECONNSOCK = 5002;
const int CUDTException::EINVPARAM = 5003;
const int CUDTException::EINVSOCK = 5004;
const int CUDTException::EUNBOUNDSOCK = 5005;
const int CUDTException::ENOLISTEN = 5006;
const int CUDTException::ERDVNOSERV = 5007;
const int CUDTException::ERDVUNBOUND = 5008;
const int CUDTException::ESTREAMILL = 5009;
const int CUDTException::EDGRAMILL = 5010;
const int CUDTException::EDUPLISTEN = 5011;
const int CUDTException::ELARGEMSG = 5012;
const int CUDTException::EINVPOLLID = 5013;
const int CUDTException::EASYNCFAIL = 6000;
const int CUDTException::EASYNCSND = 6001;
const int CUDTException::EASYNCRCV = 6002;
const int CUDTException::ETIMEOUT = 6003;
const int CUDTException::EPEERERR = 7000;
const int CUDTException::EUNKNOWN = -1;

namespace UDT {

const UDTSOCKET INVALID_SOCK = -1;
const int ERROR = -1;

ERRORINFO& getlasterror() { return last(); }
int getlasterror_code() { return last().getErrorCode(); }
const char* getlasterror_desc() { return last().getErrorMessage(); }

}  // namespace UDT

void note_failure(int code, int error_number) {
    // The code of unknown errors is negative, and belongs to no category.
    const int category = code < 0 ? 0 : code / CATEGORY;
    last() = CUDTException(category, code - category * CATEGORY, error_number);
}

int64_t value_of(const FhOutcome& outcome) {
    if (outcome.code == 0) {
        return outcome.value;
    }
    note_failure(outcome.code, outcome.error_number);
    return UDT::ERROR;
}
