/* Copies a file or a tree with a progress line. The environment may name a rate in bits per second, and a number of files after
 * which it is cancelled:
 *
 *     copy [--plain] SRC DST        RATE=50000000 LIMIT=10 copy SRC DST
 */
#include <stdatomic.h>
#include <string.h>

#include "check.h"

/* What the events tell. They come on any thread. */
struct progress {
    atomic_ullong total, placed;
    unsigned long long limit;
    farhaul_cancellation *cancellation;
};

static void hear(void *context, const farhaul_event *event) {
    struct progress *progress = context;
    switch (event->kind) {
    case FARHAUL_EVENT_KIND_EXPECTED:
        atomic_store(&progress->total, event->size);
        break;
    case FARHAUL_EVENT_KIND_MOVED:
        fprintf(stderr, "\r%llu of %llu bytes", (unsigned long long)event->bytes, atomic_load(&progress->total));
        break;
    case FARHAUL_EVENT_KIND_PLACED:
        fprintf(stderr, "\r%s: %llu bytes, verified\n", event->path, (unsigned long long)event->size);
        if (atomic_fetch_add(&progress->placed, 1) + 1 == progress->limit) {
            farhaul_cancellation_cancel(progress->cancellation);
        }
        break;
    case FARHAUL_EVENT_KIND_FAILED:
    case FARHAUL_EVENT_KIND_WARNING:
        fprintf(stderr, "\r%s %s\n", event->path, event->message);
        break;
    default:
        break;
    }
}

int main(int count, char **words) {
    farhaul_error *error;
    farhaul_access *access = farhaul_access_new();
    if (count == 4 && strcmp(words[1], "--plain") == 0) {
        check(farhaul_access_plain(access, &error), &error);
        words++;
        count--;
    }
    if (count != 3) {
        fputs("usage: copy [--plain] SRC DST\n", stderr);
        return 2;
    }
    const char *rate = getenv("RATE");
    if (rate) {
        check(farhaul_access_set_max_rate(access, strtoull(rate, NULL, 10), &error), &error);
    }
    const char *sources[] = {words[1]};
    farhaul_copy *copy;
    check(farhaul_copy_new(sources, 1, words[2], FARHAUL_COPY_RECURSIVE, access, &copy, &error), &error);
    farhaul_access_free(access);

    const char *limit = getenv("LIMIT");
    struct progress progress = {.limit = limit ? strtoull(limit, NULL, 10) : 0, .cancellation = farhaul_cancellation_new()};
    farhaul_report report;
    farhaul_result result = farhaul_copy_run(copy, hear, &progress, progress.cancellation, &report, &error);
    printf("%llu files, %llu bytes%s\n", (unsigned long long)report.files, (unsigned long long)report.bytes,
           report.verified ? ", verified" : "");
    farhaul_copy_free(copy);
    farhaul_cancellation_free(progress.cancellation);
    check(result, &error);
    farhaul_wait_idle();
    return 0;
}
