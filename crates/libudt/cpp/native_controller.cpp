// CUDTCC: the control of UDT's fourth generation, for programs that derive from it. The equations are in
// crates/cc/src/rate/udt4.rs, with their sources.

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "../include/udt/ccc.h"

namespace {

const double SECOND = 1e6;
const double DECREASE = 1.125;
// Shortest progress of the rate in a rate interval, packets.
const double LEAST_INCREASE = 0.01;
const int MOST_DECREASES = 5;
const uint32_t SEQUENCE_MASK = 0x7FFFFFFF;
const int32_t SEQUENCE_HALF = 0x3FFFFFFF;
const int WINDOW_MARGIN = 16;

uint64_t microseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// Packets from `first` to `last`, across the wrap of the numbers.
int32_t distance(int32_t first, int32_t last) {
    return static_cast<int32_t>((static_cast<uint32_t>(last) - static_cast<uint32_t>(first)) & SEQUENCE_MASK);
}

bool is_after(int32_t seq, int32_t other) { return seq != other && distance(other, seq) < SEQUENCE_HALF; }

}  // namespace

CUDTCC::CUDTCC()
    : m_rate_interval(0),
      m_last_increase(0),
      m_slow_start(false),
      m_last_ack(0),
      m_loss(false),
      m_last_decrease(0),
      m_decrease_period(0),
      m_naks(0),
      m_random(0),
      m_average_naks(0),
      m_decreases(0) {}

void CUDTCC::init() {
    m_rate_interval = m_iSYNInterval;
    m_last_increase = microseconds();
    setACKTimer(m_rate_interval);
    m_slow_start = true;
    m_last_ack = m_iSndCurrSeqNo;
    m_loss = false;
    m_last_decrease = m_iSndCurrSeqNo;
    m_decrease_period = 1;
    m_average_naks = 0;
    m_naks = 0;
    m_random = 1;
    m_decreases = 0;
    m_dCWndSize = WINDOW_MARGIN;
    m_dPktSndPeriod = 1;
}

void CUDTCC::onACK(int32_t ack) {
    const uint64_t now = microseconds();
    if (now - m_last_increase < static_cast<uint64_t>(m_rate_interval)) {
        return;
    }
    m_last_increase = now;
    if (m_slow_start) {
        m_dCWndSize += distance(m_last_ack, ack) + 1;
        m_last_ack = ack;
        if (m_dCWndSize <= m_dMaxCWndSize) {
            return;
        }
        endSlowStart();
    } else {
        m_dCWndSize = m_iRcvRate / SECOND * (m_iRTT + m_rate_interval) + WINDOW_MARGIN;
    }
    if (m_loss) {
        m_loss = false;
        return;
    }
    double spare = m_iBandwidth - SECOND / m_dPktSndPeriod;
    // Until the rate before the last decrease is reached again, a ninth of the capacity counts as spare at most.
    if (m_dPktSndPeriod > m_decrease_period && m_iBandwidth / 9.0 < spare) {
        spare = m_iBandwidth / 9.0;
    }
    double increase = LEAST_INCREASE;
    if (spare > 0) {
        increase = fmax(pow(10.0, ceil(log10(spare * m_iMSS * 8.0))) * 1.5e-6 / m_iMSS, LEAST_INCREASE);
    }
    m_dPktSndPeriod = m_dPktSndPeriod * m_rate_interval / (m_dPktSndPeriod * increase + m_rate_interval);
}

void CUDTCC::onLoss(const int32_t* losslist, int size) {
    if (size <= 0) {
        return;
    }
    if (m_slow_start) {
        endSlowStart();
        if (m_iRcvRate > 0) {
            return;
        }
    }
    m_loss = true;
    const int32_t first = static_cast<int32_t>(static_cast<uint32_t>(losslist[0]) & SEQUENCE_MASK);
    if (is_after(first, m_last_decrease)) {
        m_decrease_period = m_dPktSndPeriod;
        m_dPktSndPeriod = ceil(m_dPktSndPeriod * DECREASE);
        m_average_naks = static_cast<int>(ceil(m_average_naks * 0.875 + m_naks * 0.125));
        m_naks = 1;
        m_decreases = 1;
        m_last_decrease = m_iSndCurrSeqNo;
        // Flows that lose packets together do not all slow down together.
        unsigned seed = static_cast<unsigned>(m_last_decrease);
        m_random = static_cast<int>(ceil(m_average_naks * (static_cast<double>(rand_r(&seed)) / RAND_MAX)));
        m_random = m_random < 1 ? 1 : m_random;
    } else if (m_decreases++ < MOST_DECREASES && ++m_naks % m_random == 0) {
        m_dPktSndPeriod = ceil(m_dPktSndPeriod * DECREASE);
        m_last_decrease = m_iSndCurrSeqNo;
    }
}

void CUDTCC::onTimeout() {
    if (m_slow_start) {
        endSlowStart();
    }
}

// Goes on at the rate at which packets arrive.
void CUDTCC::endSlowStart() {
    m_slow_start = false;
    m_dPktSndPeriod = m_iRcvRate > 0 ? SECOND / m_iRcvRate : (m_iRTT + m_rate_interval) / m_dCWndSize;
}
