// Loaded before a program: its TCP connections wait until the port is open, and its TCP ports may have been open a moment ago. For
// programs whose threads race for that, and that have one port for ever.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int is_tcp(int fd) {
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

int bind(int fd, const struct sockaddr* address, socklen_t length) {
    static int (*real)(int, const struct sockaddr*, socklen_t);
    if (!real) real = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "bind");
    const int yes = 1;
    if (is_tcp(fd)) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return real(fd, address, length);
}

int connect(int fd, const struct sockaddr* to, socklen_t length) {
    static int (*real)(int, const struct sockaddr*, socklen_t);
    if (!real) real = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect");
    const int waits = is_tcp(fd);
    int result;
    while ((result = real(fd, to, length)) != 0 && waits && errno == ECONNREFUSED) usleep(1000);
    return result;
}
