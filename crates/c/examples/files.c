/* Files of another host, one by one: files udt://HOST:PORT or files HOST: over SSH. `--plain` for a server without keys. */
#include <string.h>

#include "check.h"

static bool print_entry(void *context, const char *name, const farhaul_file_info *info) {
    size_t *entries = context;
    *entries += 1;
    printf("%c %8llu %s\n", info->kind == FARHAUL_NODE_KIND_DIRECTORY ? 'd' : '-', (unsigned long long)info->size, name);
    return true;
}

int main(int count, char **words) {
    farhaul_error *error;
    farhaul_access *access = farhaul_access_new();
    if (count == 3 && strcmp(words[1], "--plain") == 0) {
        check(farhaul_access_plain(access, &error), &error);
        words++;
        count--;
    }
    if (count != 2) {
        fputs("usage: files [--plain] udt://HOST:PORT\n", stderr);
        return 2;
    }
    farhaul_files *files;
    check(farhaul_files_connect(words[1], access, &files, &error), &error);
    farhaul_access_free(access);

    const char note[] = "over the hills and far away";
    check(farhaul_files_make_directory(files, "notes", true, &error), &error);
    check(farhaul_files_put(files, "notes/first.txt", note, strlen(note), FARHAUL_PUT_REPLACE, &error), &error);
    check(farhaul_files_rename(files, "notes/first.txt", "notes/second.txt", true, &error), &error);
    check(farhaul_files_copy(files, "notes/second.txt", "notes/third.txt", true, &error), &error);

    farhaul_file_info info;
    check(farhaul_files_stat(files, "notes/third.txt", &info, &error), &error);
    char middle[32];
    size_t length;
    check(farhaul_files_read(files, "notes/third.txt", 9, middle, 5, &length, &error), &error);
    printf("%llu bytes, from the 9th on: %.*s\n", (unsigned long long)info.size, (int)length, middle);
    size_t entries = 0;
    check(farhaul_files_list(files, "notes", print_entry, &entries, &error), &error);

    /* A failure has its code and its line. */
    farhaul_result result = farhaul_files_remove(files, "notes", &error);
    printf("%s\n", farhaul_error_message(error));
    farhaul_error_free(error);
    if (result != FARHAUL_RESULT_DIRECTORY_NOT_EMPTY) {
        return 1;
    }
    uint64_t removed;
    check(farhaul_files_remove_tree(files, "notes", 10, &removed, &error), &error);
    printf("%zu entries, %llu removed\n", entries, (unsigned long long)removed);

    check(farhaul_files_close(files, &error), &error);
    farhaul_files_free(files);
    farhaul_wait_idle();
    return 0;
}
