//! Tasks in place of threads.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use farhaul::{AsyncStream, ConnectOptions, Endpoint, Error, Listener, SendOptions, wait_idle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A time-out so long that a test that waits for it never ends.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// An address of the loopback network that no other test uses, so that its ports stay free.
fn closed() -> SocketAddr {
    UdpSocket::bind("127.0.0.82:0").unwrap().local_addr().unwrap()
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn tasks_of_one_thread_transfer_to_one_another() {
    block_on(async {
        let listener = Listener::plain("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        let data: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        let sending = async {
            let mut stream = endpoint.connect_async(listener.local_addr()).await.unwrap();
            stream.write_all(&data).await.unwrap();
            stream.finish().await.unwrap();
        };
        let receiving = async {
            let (mut stream, _) = listener.accept_async().await.unwrap();
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
        let listener = Listener::plain("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        let mut stream = endpoint.connect_async(listener.local_addr()).await.unwrap();
        stream.write_all(b"everything").await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stream.stats().unwrap().totals.bytes_acked, 10);
    });
}

/// What a task writes before `end` arrives whole, although it drops its handle at once, and the peer reads only later.
fn ends_properly(secure: bool, end: impl AsyncFn(&mut AsyncStream)) {
    use farhaul::security::{AcceptAll, KeyPair, Security};
    let bind = || match secure {
        true => Endpoint::secure("127.0.0.1:0", Security::new(KeyPair::generate().unwrap(), AcceptAll)).unwrap(),
        false => Endpoint::plain("127.0.0.1:0").unwrap(),
    };
    block_on(async {
        let (here, there) = (bind(), bind());
        let listener = there.listen().unwrap();
        let (sender, receiver) = tokio::join!(here.connect_async(there.local_addr()), listener.accept_async());
        let (mut sender, (mut receiver, _)) = (sender.unwrap(), receiver.unwrap());
        let data = vec![7; 100_000];
        sender.write_all(&data).await.unwrap();
        end(&mut sender).await;
        drop(sender);
        // Whatever the drop sends has arrived then.
        wait_idle();
        let mut all = Vec::new();
        receiver.read_to_end(&mut all).await.unwrap();
        assert!(all == data);
    });
}

#[test]
fn a_stream_that_a_task_ends_and_drops_arrives_whole() {
    for secure in [false, true] {
        ends_properly(secure, async |stream| stream.finish().await.unwrap());
        ends_properly(secure, async |stream| stream.shutdown().await.unwrap());
        ends_properly(secure, async |stream| stream.finish_in_background());
    }
}

#[test]
fn a_task_that_waits_can_be_cancelled() {
    block_on(async {
        let listener = Listener::plain("127.0.0.1:0").unwrap();
        let canceller = listener.canceller();
        let cancel = async { canceller.cancel() };
        let (result, ()) = tokio::join!(listener.accept_async(), cancel);
        assert!(matches!(result, Err(Error::Cancelled)));
    });
}

/// Each side shuts its own direction down at once, and both arrive.
#[test]
fn a_shutdown_of_an_encrypted_stream_leaves_the_other_direction_open() {
    use farhaul::security::{AcceptAll, KeyPair, Security};
    let secure = || Security::new(KeyPair::generate().unwrap(), AcceptAll);
    let bind = || Endpoint::builder().secure(secure()).bind("127.0.0.1:0".parse().unwrap()).unwrap();
    block_on(async {
        let (here, there) = (bind(), bind());
        let listener = there.listen().unwrap();
        let data = vec![7; 2_000_000];
        let asks = async {
            let mut stream = here.connect_async(there.local_addr()).await.unwrap();
            stream.write_all(b"a question").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            stream.finish().await.unwrap();
            answer
        };
        let answers = async {
            let (mut stream, _) = listener.accept_async().await.unwrap();
            let mut question = String::new();
            stream.read_to_string(&mut question).await.unwrap();
            stream.write_all(&data).await.unwrap();
            stream.shutdown().await.unwrap();
            question
        };
        let (answer, question) = tokio::join!(asks, answers);
        assert_eq!(question, "a question");
        assert!(answer == data);
    });
}

/// A program that forwards data in both directions until both sides have ended.
#[test]
fn a_copy_in_both_directions_ends() {
    for far_side_is_first in [false, true] {
        block_on(async {
            let listener = Listener::plain("127.0.0.1:0").unwrap();
            let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
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
                let (mut far, _) = listener.accept_async().await.unwrap();
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

#[test]
fn messages_travel_between_tasks_with_their_boundaries_and_their_end() {
    block_on(async {
        let (here, there) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
        let listener = there.listen_for_messages().unwrap();
        let sending = async {
            let sender = here.connect_with_async(there.local_addr(), ConnectOptions::messages()).await.unwrap();
            for len in [1, 1_457, 3_000_000] {
                sender.send(&vec![7; len]).await.unwrap();
            }
            sender.send_with(b"last", SendOptions::default().in_order()).await.unwrap();
            sender.finish().await.unwrap();
        };
        let receiving = async {
            let (receiver, _) = listener.accept_async().await.unwrap();
            let (mut room, mut lengths) = (vec![0; 3_000_000], Vec::new());
            while let Some(received) = receiver.recv(&mut room).await.unwrap() {
                lengths.push(received.len);
            }
            lengths
        };
        let ((), lengths) = tokio::join!(sending, receiving);
        assert_eq!(lengths, [1, 1_457, 3_000_000, 4]);
    });
}

#[test]
fn a_message_that_can_never_fit_is_refused_to_tasks_as_well() {
    block_on(async {
        let endpoint = Endpoint::builder().plain().send_buffer(1 << 20).bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let there = Endpoint::plain("127.0.0.1:0").unwrap();
        let _listener = there.listen_for_messages().unwrap();
        let sender = endpoint.connect_with_async(there.local_addr(), ConnectOptions::messages()).await.unwrap();
        assert!(matches!(sender.send(&vec![0; 2 << 20]).await, Err(Error::MessageTooLong { len: 2_097_152, .. })));
    });
}

#[test]
fn tasks_meet_by_rendezvous() {
    block_on(async {
        let (left, right) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
        let (to_right, to_left) = (right.local_addr(), left.local_addr());
        let (mut here, mut there) = tokio::try_join!(
            left.connect_with_async(to_right, ConnectOptions::stream().rendezvous()),
            right.connect_with_async(to_left, ConnectOptions::stream().rendezvous())
        )
        .unwrap();
        there.write_all(b"stream").await.unwrap();
        let mut text = [0; 6];
        here.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"stream");
        drop((here, there));
        let (left, right) = (Endpoint::plain("127.0.0.1:0").unwrap(), Endpoint::plain("127.0.0.1:0").unwrap());
        let (to_right, to_left) = (right.local_addr(), left.local_addr());
        let meeting = (
            left.connect_with_async(to_right, ConnectOptions::messages().rendezvous()),
            right.connect_with_async(to_left, ConnectOptions::messages().rendezvous()),
        );
        let (here, there) = tokio::try_join!(meeting.0, meeting.1).unwrap();
        there.send(b"message").await.unwrap();
        assert_eq!(here.recv(&mut [0; 10]).await.unwrap().map(|received| received.len), Some(7));
    });
}

#[test]
fn a_name_is_resolved_and_its_closed_addresses_are_skipped() {
    block_on(async {
        let listener = Listener::plain("127.0.0.1:0").unwrap();
        let endpoint =
            Endpoint::builder().plain().connect_timeout(FOR_EVER).bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = listener.local_addr().port();
        let stream = endpoint.connect_async(("localhost", port)).await.unwrap();
        assert_eq!(stream.peer_addr(), listener.local_addr());
        let error = endpoint.connect_async("no such name").await.unwrap_err();
        assert!(matches!(error, Error::Resolve(_)), "{error}");
        let addresses: Vec<SocketAddr> = vec!["[::1]:9".parse().unwrap(), closed(), listener.local_addr()];
        let stream = endpoint.connect_async(Addresses(addresses)).await.unwrap();
        assert_eq!(stream.peer_addr(), listener.local_addr());
        let error = endpoint.connect_async("[::1]:9").await.unwrap_err();
        assert!(matches!(error, Error::WrongFamily { .. }), "{error}");
    });
}

#[test]
fn tasks_get_the_networks_error_for_a_closed_port() {
    block_on(async {
        let time = Duration::from_millis(200);
        let endpoint = Endpoint::builder().plain().connect_timeout(time).bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let closed = closed();
        let error = endpoint.connect_async(closed).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { peer, time: its, .. } if peer == closed && its == time),
            "{error}"
        );
    });
}

/// A name resolution that panics.
struct Broken;

impl ToSocketAddrs for Broken {
    type Iter = std::iter::Empty<SocketAddr>;

    fn to_socket_addrs(&self) -> std::io::Result<Self::Iter> {
        panic!("the search breaks")
    }
}

/// A name with several addresses.
struct Addresses(Vec<SocketAddr>);

impl ToSocketAddrs for Addresses {
    type Iter = std::vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> std::io::Result<Self::Iter> {
        Ok(self.0.clone().into_iter())
    }
}

#[test]
fn a_name_resolution_that_panics_is_an_error_and_never_a_hang() {
    block_on(async {
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        assert!(matches!(endpoint.connect_async(Broken).await, Err(Error::Resolve(_))));
    });
}
