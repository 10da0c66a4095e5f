use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

/// A fake kernel that records sends and fails on request.
struct Kernel<F> {
    fault: F,
    datagrams: RefCell<Vec<Vec<u8>>>,
    calls: RefCell<Vec<usize>>,
}

impl<F: Fn(&[u8], Option<usize>) -> Option<i32>> Kernel<F> {
    fn new(fault: F) -> Self {
        Self { fault, datagrams: RefCell::default(), calls: RefCell::default() }
    }

    fn send(&self, bytes: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        assert!(bytes.len() <= MAX_TRAIN_BYTES);
        let datagrams: Vec<Vec<u8>> = bytes.chunks(segment_size.unwrap_or(usize::MAX)).map(<[u8]>::to_vec).collect();
        self.calls.borrow_mut().push(datagrams.len());
        if let Some(errno) = (self.fault)(bytes, segment_size) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.datagrams.borrow_mut().extend(datagrams);
        Ok(())
    }
}

fn numbered(count: u8, size: usize) -> Vec<u8> {
    (0..count).flat_map(|number| vec![number; size]).collect()
}

#[test]
fn a_long_train_is_split_at_what_the_kernel_accepts() {
    let kernel = Kernel::new(|_, _| None);
    let bytes = numbered(200, 100);
    let sent = Offload::new(true).send(&bytes, 100, |bytes, size| kernel.send(bytes, size)).unwrap();
    assert_eq!(sent, Sent { taken: bytes.len(), status: SendStatus::Complete });
    assert_eq!(*kernel.calls.borrow(), [64, 64, 64, 8]);

    let kernel = Kernel::new(|_, _| None);
    let bytes = numbered(60, 1_472);
    let _ = Offload::new(true).send(&bytes, 1_472, |bytes, size| kernel.send(bytes, size)).unwrap();
    assert_eq!(*kernel.calls.borrow(), [44, 16], "44 × 1472 is the most below 65 507");
}

#[test]
fn a_refused_offload_is_switched_off_and_the_same_datagrams_go_out_again() {
    for errno in [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP] {
        let kernel = Kernel::new(|_, segment_size| segment_size.map(|_| errno));
        let offload = Offload::new(true);
        let mut bytes = numbered(10, 50);
        bytes.truncate(480);
        let sent = offload.send(&bytes, 50, |bytes, size| kernel.send(bytes, size)).unwrap();
        assert_eq!(sent.taken, 480);
        assert_eq!(kernel.datagrams.borrow().concat(), bytes);
        assert_eq!(kernel.datagrams.borrow().len(), 10);
        assert_eq!(offload.counters(), SendCounters { lost: 0, fallbacks: 1, segmentation: false });
        let _ = offload.send(&bytes, 50, |bytes, size| kernel.send(bytes, size)).unwrap();
        assert_eq!(offload.counters().fallbacks, 1, "no second attempt");
    }
}

#[test]
fn an_impossible_destination_keeps_the_offload_for_other_peers() {
    let kernel = Kernel::new(|_, _| Some(libc::EINVAL));
    let offload = Offload::new(true);
    let sent = offload.send(&numbered(5, 10), 10, |bytes, size| kernel.send(bytes, size)).unwrap();
    assert_eq!(sent, Sent { taken: 50, status: SendStatus::Complete });
    assert_eq!(offload.counters(), SendCounters { lost: 5, fallbacks: 1, segmentation: true });
}

#[test]
fn datagrams_above_the_path_mtu_are_reported_as_too_large() {
    // Kernels report an oversized segment as EINVAL or EMSGSIZE, an oversized datagram always as EMSGSIZE.
    for segmented in [libc::EINVAL, libc::EMSGSIZE] {
        let kernel =
            Kernel::new(|_, segment_size| Some(if segment_size.is_some() { segmented } else { libc::EMSGSIZE }));
        let offload = Offload::new(true);
        let sent = offload.send(&numbered(5, 10), 10, |bytes, size| kernel.send(bytes, size)).unwrap();
        assert_eq!(sent, Sent { taken: 0, status: SendStatus::TooLarge });
        assert!(offload.counters().segmentation, "the size was at fault, not the offload");
    }
}

#[test]
fn a_full_buffer_leaves_the_rest_to_the_caller() {
    let room = RefCell::new(2);
    let kernel = Kernel::new(|_, _| {
        *room.borrow_mut() -= 1;
        (*room.borrow() < 0).then_some(libc::EAGAIN)
    });
    let sent = Offload::new(true).send(&numbered(200, 100), 100, |bytes, size| kernel.send(bytes, size)).unwrap();
    assert_eq!(sent, Sent { taken: 128 * 100, status: SendStatus::Blocked });
}

#[test]
fn temporary_refusals_are_losses_and_end_no_send() {
    for errno in [libc::ECONNREFUSED, libc::ENETUNREACH, libc::EPERM, libc::ENOBUFS] {
        let kernel = Kernel::new(|_, _| Some(errno));
        let offload = Offload::new(true);
        let sent = offload.send(&numbered(70, 10), 10, |bytes, size| kernel.send(bytes, size)).unwrap();
        assert_eq!(sent, Sent { taken: 700, status: SendStatus::Complete });
        assert_eq!(offload.counters(), SendCounters { lost: 70, fallbacks: 0, segmentation: true });
        assert_eq!(kernel.calls.borrow().len(), 2, "each piece is offered once");
    }
}

#[test]
fn a_broken_socket_is_an_error() {
    let result = Offload::new(true).send(&[1], 1, |_, _| Err(io::Error::from_raw_os_error(libc::EBADF)));
    assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EBADF));
}

proptest! {
    /// On any failure, every datagram is sent once, lost once or handed back, and the number of calls is bounded.
    #[test]
    fn every_datagram_is_sent_lost_or_handed_back(
        segment_size in 1_usize..2_000,
        length in 0_usize..200_000,
        faults in proptest::collection::vec(
            prop_oneof![
                8 => Just(None),
                1 => Just(Some(libc::EIO)),
                1 => Just(Some(libc::EMSGSIZE)),
                1 => Just(Some(libc::EAGAIN)),
                1 => Just(Some(libc::ENOBUFS)),
            ],
            1..40,
        ),
    ) {
        let bytes: Vec<u8> = (0..length).map(|index| (index / segment_size) as u8).collect();
        let calls = RefCell::new(0);
        let kernel = Kernel::new(|_, _| {
            *calls.borrow_mut() += 1;
            faults[*calls.borrow() % faults.len()]
        });
        let offload = Offload::new(true);
        let sent = offload.send(&bytes, segment_size, |bytes, size| kernel.send(bytes, size)).unwrap();
        prop_assert!(sent.taken <= bytes.len());
        prop_assert_eq!(sent.taken == bytes.len(), sent.status == SendStatus::Complete);
        let accepted = kernel.datagrams.borrow().len() + offload.counters().lost as usize;
        prop_assert_eq!(accepted, sent.taken.div_ceil(segment_size));
    }
}
