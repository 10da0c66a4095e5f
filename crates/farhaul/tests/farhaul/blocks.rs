//! Blocks of memory that are handed over in place of copies.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::thread;

use farhaul::registry::protocols;
use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Builder, Bytes, Endpoint, Stream};

/// Bytes that differ everywhere, so that a misplaced block shows.
fn content(len: usize) -> Bytes {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn pair(builder: impl Fn() -> Builder) -> (Stream, Stream) {
    let any = "127.0.0.1:0".parse().unwrap();
    let server = builder().bind(any).unwrap();
    let listener = server.listen().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let caller = builder().bind(any).unwrap().connect(server.local_addr()).unwrap();
        (caller, accepted.join().unwrap())
    })
}

/// Sends pieces of these sizes, in turn as copies and as blocks.
fn send(stream: &Stream, all: &Bytes, sizes: &[usize]) {
    let (mut rest, mut pieces) = (all.clone(), sizes.iter().cycle());
    for turn in 0.. {
        let mut piece = rest.split_to(rest.len().min(*pieces.next().unwrap()));
        if turn % 3 == 1 {
            stream.send_all(&piece).unwrap();
            continue;
        }
        while !piece.is_empty() {
            let taken = stream.send_block(piece.clone()).unwrap();
            piece = piece.slice(taken..);
        }
        if rest.is_empty() {
            return;
        }
    }
}

/// Receives everything, in turn into memory of its own and as blocks.
fn receive(stream: &Stream) -> Vec<u8> {
    let (mut all, mut own, mut blocks) = (Vec::new(), vec![0; 3_000], Vec::new());
    for turn in 0.. {
        let len = if turn % 5 == 0 { stream.recv(&mut own) } else { stream.recv_blocks(&mut blocks) }.unwrap();
        if len == 0 {
            break;
        }
        assert!(turn % 5 == 0 || blocks.iter().map(Bytes::len).sum::<usize>() == len);
        all.extend_from_slice(if turn % 5 == 0 { &own[..len] } else { &[] });
        blocks.drain(..).for_each(|block| all.extend_from_slice(&block));
    }
    all
}

#[test]
fn blocks_and_copies_arrive_in_order_over_every_protocol() {
    let all = content(5_000_000);
    for entry in protocols() {
        let protocol = || entry.name.parse().unwrap();
        let security = || Security::new(KeyPair::generate().unwrap(), AcceptAll);
        for encrypted in [false, true] {
            let builder = || match Endpoint::builder().protocol(protocol()) {
                builder if encrypted => builder.secure(security()),
                builder => builder.plain(),
            };
            let (caller, accepted) = pair(builder);
            let got = thread::scope(|scope| {
                let reads = scope.spawn(|| receive(&accepted));
                send(&caller, &all, &[700_000, 1, 90, 65_000, 1_500]);
                caller.finish().unwrap();
                reads.join().unwrap()
            });
            assert!(got == all, "{} encrypted {encrypted}", entry.name);
        }
    }
    assert!(all.is_unique(), "no connection holds a block that was acknowledged");
}

#[test]
fn a_reader_may_keep_all_blocks_and_nobody_writes_into_them() {
    let (caller, accepted) = pair(|| Endpoint::builder().plain());
    let all = content(20_000_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            send(&caller, &all, &[1 << 20]);
            caller.finish().unwrap();
        });
        let mut kept = Vec::new();
        while accepted.recv_blocks(&mut kept).unwrap() > 0 {}
        assert!(kept.concat() == all);
    });
}

#[test]
fn an_abort_frees_the_blocks_that_nobody_has_acknowledged() {
    let (caller, accepted) = pair(|| Endpoint::builder().plain());
    let block = content(1 << 20);
    assert!(caller.send_block(block.clone()).unwrap() > 0 && caller.send_block(Bytes::new()).unwrap() == 0);
    assert!(!block.is_unique(), "it is kept");
    caller.abort();
    drop((caller, accepted));
    farhaul::wait_idle();
    assert!(block.is_unique());
}
