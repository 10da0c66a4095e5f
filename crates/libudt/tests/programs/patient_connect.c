// Loaded before a program: its TCP connections wait until the port is open. For programs whose threads race for that.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int connect(int fd, const struct sockaddr* to, socklen_t length) {
    static int (*real)(int, const struct sockaddr*, socklen_t);
    if (!real) real = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect");
    int type = 0;
    socklen_t size = sizeof type;
    const int is_tcp = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    int result;
    while ((result = real(fd, to, length)) != 0 && is_tcp && errno == ECONNREFUSED) usleep(1000);
    return result;
}
