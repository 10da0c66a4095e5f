//! Tasks in place of threads.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use farhaul::{Endpoint, Error, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn tasks_of_one_thread_transfer_to_one_another() {
    block_on(async {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
        let data: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        let sending = async {
            let mut stream = endpoint.connect_async(listener.local_addr()).await.unwrap();
            stream.write_all(&data).await.unwrap();
            stream.finish().await.unwrap();
        };
        let receiving = async {
            let (stream, _) = listener.accept_async().await.unwrap();
            let mut stream = farhaul::AsyncStream::from(stream);
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            all
        };
        let ((), all) = tokio::join!(sending, receiving);
        assert!(all == data);
    });
}

#[test]
fn shutting_down_is_finishing() {
    block_on(async {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
        let mut stream = endpoint.connect_async(listener.local_addr()).await.unwrap();
        stream.write_all(b"everything").await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stream.as_blocking().stats().unwrap().totals.bytes_acked, 10);
    });
}

#[test]
fn a_task_that_waits_can_be_cancelled() {
    block_on(async {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let canceller = listener.canceller();
        let cancel = async { canceller.cancel() };
        let (result, ()) = tokio::join!(listener.accept_async(), cancel);
        assert!(matches!(result, Err(Error::Cancelled)));
    });
}

/// A program that passes on what comes from both sides until both have ended.
#[test]
fn whoever_copies_in_both_directions_comes_to_the_end() {
    for far_side_is_first in [false, true] {
        block_on(async {
            let listener = Listener::bind("127.0.0.1:0").unwrap();
            let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
            let (mut near, mut inner) = tokio::io::duplex(64);
            let passing_on = async {
                let mut outer = endpoint.connect_async(listener.local_addr()).await.unwrap();
                tokio::io::copy_bidirectional(&mut inner, &mut outer).await.unwrap()
            };
            let near = async {
                let mut all = Vec::new();
                if far_side_is_first {
                    near.read_to_end(&mut all).await.unwrap();
                    near.shutdown().await.unwrap();
                } else {
                    near.write_all(b"question").await.unwrap();
                    near.shutdown().await.unwrap();
                    near.read_to_end(&mut all).await.unwrap();
                }
                all.len() as u64
            };
            let far = async {
                let (far, _) = listener.accept_async().await.unwrap();
                let mut far = farhaul::AsyncStream::from(far);
                let mut all = Vec::new();
                if far_side_is_first {
                    far.write_all(b"an answer").await.unwrap();
                    far.shutdown().await.unwrap();
                } else {
                    far.read_to_end(&mut all).await.unwrap();
                }
                all.len() as u64
            };
            let (passed_on, to_near, to_far) = tokio::join!(passing_on, near, far);
            assert_eq!(passed_on, (to_far, to_near));
            assert_eq!(passed_on, if far_side_is_first { (0, 9) } else { (8, 0) });
        });
    }
}
