//! Groups of functions by their names.

/// The groups, in the order of the table.
pub(super) const GROUPS: [&str; 10] =
    [SEGMENTATION, COPIES, FAULTS, TRANSMIT, PROTOCOL, WAITS, CALLS, MESSAGES, ENCRYPTION, OTHER];

const SEGMENTATION: &str = "segmentation";
const COPIES: &str = "copies";
const FAULTS: &str = "page faults and memory";
const TRANSMIT: &str = "transmit";
const PROTOCOL: &str = "headers and protocol";
const WAITS: &str = "futex, sleep, epoll";
const CALLS: &str = "calls and message headers";
const MESSAGES: &str = "control messages";
const ENCRYPTION: &str = "encryption";
const OTHER: &str = "other";

/// Parts of names of the kernel's functions; `^` is the beginning of a name. The first group with a part counts, so the special
/// ones come first.
const OF_THE_KERNEL: [(&str, &[&str]); 8] = [
    (MESSAGES, &["cmsg", "scm_", "recv_timestamp", "sock_recv_errqueue"]),
    (SEGMENTATION, &["segment", "gso", "gro_", "skb_release_data", "copy_skb_header", "skb_headers_offset"]),
    (
        WAITS,
        &[
            "futex",
            "^ep_",
            "epoll",
            "nanosleep",
            "hrtimer",
            "schedule",
            "sched_clock",
            "try_to_wake",
            "wake_up",
            "task_fair",
            "^pick_",
            "finish_task_switch",
            "update_curr",
            "update_load",
            "eventfd",
            "timerfd",
            "ktime_get",
            "spin_unlock_irqrestore",
            "native_write_msr",
            "__switch_",
        ],
    ),
    (
        COPIES,
        &[
            "copy_to_",
            "copy_from_",
            "copy_user",
            "rep_movs",
            "iter_to",
            "datagram_iter",
            "memcpy",
            "skb_copy_",
            "csum_partial",
            "check_object",
            "check_heap",
            "check_stack",
            "virt_addr_valid",
        ],
    ),
    (
        FAULTS,
        &[
            "page",
            "_fault",
            "fault_",
            "folio",
            "memcg",
            "charge",
            "rmqueue",
            "lru",
            "zap_",
            "madvise",
            "vma",
            "mas_",
            "mmap",
            "munmap",
            "unmap",
            "_pte",
            "pte_",
            "pmd",
            "slab",
            "kmalloc",
            "kmem_cache",
            "kfree",
            "list_del_entry",
            "pfnblock",
            "build_skb",
            "alloc_skb",
            "tlb",
        ],
    ),
    (
        CALLS,
        &[
            "recv",
            "udp_rmem",
            "consume_udp",
            "skb_consume",
            "skb_free_datagram",
            "udp_skb_destructor",
            "poll",
            "iovec",
            "msghdr",
            "move_addr",
            "get_user_",
            "put_user_",
            "fdget",
            "syscall",
            "SYSCALL",
        ],
    ),
    (
        TRANSMIT,
        &[
            "tun_",
            "xmit",
            "veth",
            "qdisc",
            "^sch_",
            "ip_output",
            "ip_finish",
            "ip_local_out",
            "ip_send",
            "ip_make",
            "ip_append",
            "ip_build",
            "ip_setup_cork",
            "udp_send",
            "sendmsg",
            "sendmmsg",
            "sendto",
            "neigh",
            "^nf_",
            "^fib_",
            "ip_route",
            "sock_wfree",
            "skb_orphan",
            "sock_alloc_send",
            "ip_select_ident",
            "ipv4_mtu",
            "loopback",
        ],
    ),
    (OTHER, &[""]),
];

/// Parts of names of functions of ciphers and digests.
const OF_CIPHERS: [&str; 8] = ["aes", "gcm", "ghash", "chacha", "poly1305", "aws_lc", "seal", "aead"];

/// The group of a function in an object: the kernel, a library, or the program.
pub(super) fn group(function: &str, object: &str) -> &'static str {
    if object.starts_with('[') {
        let has = |parts: &&[&str]| parts.iter().any(|part| matches(function, part));
        return OF_THE_KERNEL.iter().find(|(_, parts)| has(parts)).map_or(OTHER, |(group, _)| group);
    }
    let in_library = object.contains("/libc.so") || object.contains("/libc-");
    let lower = function.to_lowercase();
    match () {
        () if OF_CIPHERS.iter().any(|part| lower.contains(part)) => ENCRYPTION,
        () if ["memcpy", "memmove", "memset"].iter().any(|part| function.contains(part)) => COPIES,
        () if ["malloc", "free", "realloc", "madvise", "mmap"].iter().any(|part| function.contains(part)) => FAULTS,
        // Without the debugging symbols of the library, its copies have no name. Its other functions only enter the kernel.
        () if in_library && function == "[unknown]" => COPIES,
        () if in_library => CALLS,
        () => PROTOCOL,
    }
}

fn matches(function: &str, part: &str) -> bool {
    part.strip_prefix('^').map_or_else(|| function.contains(part), |begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "[kernel.kallsyms]";
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    const PROGRAM: &str = "/target/release/farhaul-sending";

    #[test]
    fn functions_belong_to_the_groups_of_the_table() {
        for (function, object, expected) in [
            ("skb_segment", KERNEL, SEGMENTATION),
            ("_copy_from_iter", KERNEL, COPIES),
            ("rep_movs_alternative", KERNEL, COPIES),
            ("clear_page_erms", KERNEL, FAULTS),
            ("tun_net_xmit", KERNEL, TRANSMIT),
            ("futex_wait_queue", KERNEL, WAITS),
            ("udp_recvmsg", KERNEL, CALLS),
            ("__sock_recv_cmsgs", KERNEL, MESSAGES),
            ("entry_SYSCALL_64", KERNEL, CALLS),
            ("copy_msghdr_from_user", KERNEL, CALLS),
            ("__check_object_size", KERNEL, COPIES),
            ("irqentry_exit_to_user_mode", KERNEL, OTHER),
            ("[unknown]", LIBRARY, COPIES),
            ("__memmove_avx_unaligned_erms", LIBRARY, COPIES),
            ("aws_lc_0_47_0_aesni_gcm_encrypt", PROGRAM, ENCRYPTION),
            ("farhaul_proto::udt::established::poll", PROGRAM, PROTOCOL),
        ] {
            assert_eq!(group(function, object), expected, "{function}");
        }
    }
}
