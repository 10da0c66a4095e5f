// select and epoll with sets and vectors of the C++ library.

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "../include/udt/udt.h"
#include "error.h"

namespace {

const int64_t FOR_EVER = -1;

int64_t milliseconds(const struct timeval* timeout) {
    // A wait of less than a millisecond is one of a millisecond, not none.
    return timeout ? timeout->tv_sec * int64_t(1000) + (timeout->tv_usec + 999) / 1000 : FOR_EVER;
}

// The results of a wait: sockets to read and to write, and descriptors of the system to read and to write.
struct Results {
    std::set<int>* sets[4];

    int wanted() const {
        int bits = 0;
        for (int i = 0; i < 4; ++i) {
            bits |= sets[i] ? 1 << i : 0;
        }
        return bits;
    }

    // Without memory for an id the program ends, since the caller cannot pass an exception on.
    static void take(void* context, int32_t set, int32_t id) noexcept {
        static_cast<Results*>(context)->sets[set]->insert(id);
    }
};

// Fills an array of `*count` places.
void fill(int* array, int* count, const std::set<int>& found) {
    if (!array || !count) {
        return;
    }
    *count = std::min<int>(*count, static_cast<int>(found.size()));
    std::copy_n(found.begin(), std::max(*count, 0), array);
}

}  // namespace

namespace UDT {

int select(int, UDSET* readfds, UDSET* writefds, UDSET* exceptfds, const struct timeval* timeout) {
    UDSET* const sets[3] = {readfds, writefds, exceptfds};
    if (!readfds && !writefds && !exceptfds) {
        note_failure(CUDTException::EINVPARAM, 0);
        return ERROR;
    }
    std::vector<int> ids[3];
    FhIds raw[3];
    for (int i = 0; i < 3; ++i) {
        if (sets[i]) {
            ids[i].assign(sets[i]->begin(), sets[i]->end());
        }
        raw[i] = FhIds{ids[i].empty() ? nullptr : ids[i].data(), ids[i].size()};
    }
    const int64_t count = value_of(fh_udt_select(raw, milliseconds(timeout)));
    if (count == ERROR) {
        return ERROR;
    }
    for (int i = 0; i < 3; ++i) {
        if (sets[i]) {
            sets[i]->clear();
            sets[i]->insert(ids[i].begin(), ids[i].begin() + static_cast<std::ptrdiff_t>(raw[i].ids ? raw[i].count : 0));
        }
    }
    return static_cast<int>(count);
}

int selectEx(const std::vector<UDTSOCKET>& fds, std::vector<UDTSOCKET>* readfds, std::vector<UDTSOCKET>* writefds,
             std::vector<UDTSOCKET>* exceptfds, int64_t msTimeOut) {
    std::vector<UDTSOCKET>* const lists[3] = {readfds, writefds, exceptfds};
    const int events[3] = {UDT_EPOLL_IN, UDT_EPOLL_OUT, UDT_EPOLL_ERR};
    int wanted = 0;
    for (int i = 0; i < 3; ++i) {
        if (lists[i]) {
            lists[i]->clear();
            wanted |= events[i];
        }
    }
    std::vector<int> found(fds.size());
    if (value_of(fh_udt_select_ex(fds.data(), found.data(), fds.size(), wanted, msTimeOut)) == ERROR) {
        return ERROR;
    }
    int count = 0;
    for (size_t at = 0; at < fds.size(); ++at) {
        for (int i = 0; i < 3; ++i) {
            if (lists[i] && (found[at] & events[i])) {
                lists[i]->push_back(fds[at]);
                ++count;
            }
        }
    }
    return count;
}

int epoll_wait(int eid, std::set<UDTSOCKET>* readfds, std::set<UDTSOCKET>* writefds, int64_t msTimeOut,
               std::set<SYSSOCKET>* lrfds, std::set<SYSSOCKET>* wrfds) {
    Results results = {{readfds, writefds, lrfds, wrfds}};
    for (std::set<int>* set : results.sets) {
        if (set) {
            set->clear();
        }
    }
    return static_cast<int>(
        value_of(fh_udt_epoll_wait(eid, results.wanted(), msTimeOut, &Results::take, &results)));
}

int epoll_wait2(int eid, UDTSOCKET* readfds, int* rnum, UDTSOCKET* writefds, int* wnum, int64_t msTimeOut,
                SYSSOCKET* lrfds, int* lrnum, SYSSOCKET* lwfds, int* lwnum) {
    std::set<int> sets[4];
    const auto wanted = [](const int* array, const int* count, std::set<int>* set) {
        return array && count ? set : nullptr;
    };
    const int count = epoll_wait(eid, wanted(readfds, rnum, &sets[0]), wanted(writefds, wnum, &sets[1]), msTimeOut,
                                 wanted(lrfds, lrnum, &sets[2]), wanted(lwfds, lwnum, &sets[3]));
    if (count == ERROR) {
        return ERROR;
    }
    fill(readfds, rnum, sets[0]);
    fill(writefds, wnum, sets[1]);
    fill(lrfds, lrnum, sets[2]);
    fill(lwfds, lwnum, sets[3]);
    return count;
}

}  // namespace UDT
