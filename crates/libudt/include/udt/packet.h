// Packets as congestion controllers see them.

#ifndef FARHAUL_UDT_PACKET_H
#define FARHAUL_UDT_PACKET_H

#include <sys/uio.h>

#include "udt.h"

class CPacket {
public:
    // The four words of the header.
    int32_t& m_iSeqNo;
    int32_t& m_iMsgNo;
    int32_t& m_iTimeStamp;
    int32_t& m_iID;
    // Payload of data, or the body of a control packet.
    char*& m_pcData;

    UDT_API static const int m_iPktHdrSize;

    UDT_API CPacket();
    UDT_API ~CPacket();

    // Bytes behind the header.
    UDT_API int getLength() const;
    UDT_API void setLength(int len);
    // Makes it a control packet. The body is not copied. A user-defined packet has the type 0x7FFF, *(int32_t*)lparam as its
    // own type, and the body rparam.
    UDT_API void pack(int pkttype, void* lparam = NULL, void* rparam = NULL, int size = 0);
    // Header and body.
    UDT_API iovec* getPacketVector();
    // 1 for a control packet.
    UDT_API int getFlag() const;
    UDT_API int getType() const;
    UDT_API int getExtendedType() const;
    UDT_API int32_t getAckSeqNo() const;
    // 2 for the first packet of a message, 1 for the last, 3 for the only one.
    UDT_API int getMsgBoundary() const;
    UDT_API bool getMsgOrderFlag() const;
    UDT_API int32_t getMsgSeq() const;
    // A copy with a body of its own, which the caller deletes along with the packet.
    UDT_API CPacket* clone() const;

protected:
    uint32_t m_nHeader[4];
    iovec m_PacketVector[2];
    int32_t m_reserved;

private:
    CPacket(const CPacket&);
    CPacket& operator=(const CPacket&);
};

#endif
