/* What all examples do with a result: they end the program if a call has failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "farhaul.h"

/* `error` is what the call got, and not its value, because C evaluates the arguments of a call in any order. */
static inline void check(farhaul_result result, farhaul_error **error) {
    if (result == FARHAUL_RESULT_OK) {
        return;
    }
    fprintf(stderr, "%s\n", error ? farhaul_error_message(*error) : farhaul_strerror(result));
    if (error) {
        farhaul_error_free(*error);
    }
    exit(1);
}

#endif
