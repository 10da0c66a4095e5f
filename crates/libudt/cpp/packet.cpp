// CPacket: the header in the order of the host, and a body that belongs to somebody else.

#include "../include/udt/packet.h"

#include <string.h>

namespace {

const uint32_t CONTROL = 0x80000000;
const int TYPE_SHIFT = 16;
const uint32_t TYPE_MASK = 0x7FFF;
const uint32_t EXTENDED_MASK = 0xFFFF;
const int USER_DEFINED = 0x7FFF;
const uint32_t ORDER = 0x20000000;
const uint32_t MESSAGE_MASK = 0x1FFFFFFF;
const int BOUNDARY_SHIFT = 30;

// Control packets without a body have one word.
int32_t no_body = 0;

// Types of control packets.
enum Type { HANDSHAKE = 0, ACK = 2, NAK = 3, ACK2 = 6, DROP = 7 };

}  // namespace

const int CPacket::m_iPktHdrSize = 16;

CPacket::CPacket()
    : m_iSeqNo(reinterpret_cast<int32_t&>(m_nHeader[0])),
      m_iMsgNo(reinterpret_cast<int32_t&>(m_nHeader[1])),
      m_iTimeStamp(reinterpret_cast<int32_t&>(m_nHeader[2])),
      m_iID(reinterpret_cast<int32_t&>(m_nHeader[3])),
      m_pcData(reinterpret_cast<char*&>(m_PacketVector[1].iov_base)),
      m_nHeader(),
      m_PacketVector(),
      m_reserved(0) {
    m_PacketVector[0].iov_base = m_nHeader;
    m_PacketVector[0].iov_len = m_iPktHdrSize;
}

CPacket::~CPacket() {}

int CPacket::getLength() const { return static_cast<int>(m_PacketVector[1].iov_len); }
void CPacket::setLength(int len) { m_PacketVector[1].iov_len = static_cast<size_t>(len); }

void CPacket::pack(int pkttype, void* lparam, void* rparam, int size) {
    m_nHeader[0] = CONTROL | (static_cast<uint32_t>(pkttype) << TYPE_SHIFT);
    const uint32_t information = lparam ? static_cast<uint32_t>(*static_cast<int32_t*>(lparam)) : 0;
    if (pkttype == USER_DEFINED) {
        m_nHeader[0] |= information & EXTENDED_MASK;
    } else if (lparam) {
        m_nHeader[1] = information;
    }
    const bool has_body = rparam && (pkttype == HANDSHAKE || pkttype == ACK || pkttype == NAK || pkttype == DROP ||
                                     pkttype == USER_DEFINED);
    m_PacketVector[1].iov_base = has_body ? rparam : &no_body;
    m_PacketVector[1].iov_len = has_body ? static_cast<size_t>(size) : sizeof no_body;
}

iovec* CPacket::getPacketVector() { return m_PacketVector; }
int CPacket::getFlag() const { return m_nHeader[0] & CONTROL ? 1 : 0; }
int CPacket::getType() const { return static_cast<int>((m_nHeader[0] >> TYPE_SHIFT) & TYPE_MASK); }
int CPacket::getExtendedType() const { return static_cast<int>(m_nHeader[0] & EXTENDED_MASK); }
int32_t CPacket::getAckSeqNo() const { return static_cast<int32_t>(m_nHeader[1]); }
int CPacket::getMsgBoundary() const { return static_cast<int>(m_nHeader[1] >> BOUNDARY_SHIFT); }
bool CPacket::getMsgOrderFlag() const { return (m_nHeader[1] & ORDER) != 0; }
int32_t CPacket::getMsgSeq() const { return static_cast<int32_t>(m_nHeader[1] & MESSAGE_MASK); }

CPacket* CPacket::clone() const {
    CPacket* const copy = new CPacket;
    memcpy(copy->m_nHeader, m_nHeader, sizeof m_nHeader);
    const size_t length = m_PacketVector[1].iov_len;
    char* const body = new char[length];
    if (length > 0 && m_PacketVector[1].iov_base) {
        memcpy(body, m_PacketVector[1].iov_base, length);
    }
    copy->m_PacketVector[1].iov_base = body;
    copy->m_PacketVector[1].iov_len = length;
    return copy;
}
