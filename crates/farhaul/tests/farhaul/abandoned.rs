//! Abandoned waits of tasks leave no waker behind, and lose nothing.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use farhaul::{AsyncMessageSocket, AsyncStream, ConnectOptions, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Consecutive abandoned waits.
const TIMES: usize = 1_000;

/// A task, held as long as its waker or a clone lives.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// The tasks that abandoned their waits.
#[derive(Default)]
struct Tasks(Vec<Arc<Task>>);

impl Tasks {
    /// Has a new task poll `wait` once and abandon it. Returns whether it had to wait.
    fn abandon<F: Future>(&mut self, wait: F) -> bool {
        let task = Arc::new(Task);
        let waker = Waker::from(Arc::clone(&task));
        self.0.push(task);
        pin!(wait).poll(&mut Context::from_waker(&waker)).is_pending()
    }

    /// The number of these tasks that are still held.
    fn held(&self) -> usize {
        self.0.iter().filter(|task| Arc::strong_count(task) > 1).count()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// An endpoint whose buffers a few writes fill.
fn endpoint() -> Endpoint {
    Endpoint::builder().plain().send_buffer(100_000).recv_buffer(100_000).bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

fn streams(here: &Endpoint, there: &Endpoint) -> (AsyncStream, AsyncStream) {
    let listener = there.listen().unwrap();
    block_on(async {
        let (stream, accepted) =
            tokio::join!(here.connect_async(there.local_addr()), async { listener.accept_async().await.unwrap().0 });
        (stream.unwrap(), accepted)
    })
}

fn message_sockets(here: &Endpoint, there: &Endpoint) -> (AsyncMessageSocket, AsyncMessageSocket) {
    let listener = there.listen_for_messages().unwrap();
    block_on(async {
        let (socket, accepted) =
            tokio::join!(here.connect_with_async(there.local_addr(), ConnectOptions::messages()), async {
                listener.accept_async().await.unwrap().0
            });
        (socket.unwrap(), accepted)
    })
}

#[test]
fn a_stream_holds_only_the_last_task_of_abandoned_reads_and_none_once_dropped() {
    let (here, there) = (endpoint(), endpoint());
    let (mut stream, peer) = streams(&here, &there);
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.abandon(stream.read(&mut [0; 10])));
        assert!(tasks.abandon(stream.clone().read(&mut [0; 10])));
    }
    assert_eq!(tasks.held(), 1, "a dropped read of tokio leaves its last waker with the stream");
    drop(stream);
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn a_stream_holds_only_the_last_task_of_abandoned_writes_and_none_once_dropped() {
    let (here, there) = (endpoint(), endpoint());
    let (mut stream, peer) = streams(&here, &there);
    let mut tasks = Tasks::default();
    let mut waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.abandon(stream.write(&[0; 10_000])));
    }
    assert!(tasks.held() <= 1, "{} tasks", tasks.held());
    waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.abandon(stream.clone().write(&[0; 10_000])));
    }
    assert!(tasks.held() <= 1, "{} tasks", tasks.held());
    assert!(tasks.abandon(stream.shutdown()));
    drop(stream);
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn abandoned_calls_of_message_sockets_hold_no_task() {
    let (here, there) = (endpoint(), endpoint());
    let (socket, peer) = message_sockets(&here, &there);
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.abandon(socket.recv(&mut [0; 10])));
    }
    assert_eq!(tasks.held(), 0);
    let mut waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.abandon(socket.send(&[0; 10_000])));
    }
    assert_eq!(tasks.held(), 0);
    assert!(tasks.abandon(socket.finish()));
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn abandoned_accepts_and_connects_hold_no_task() {
    let (here, there) = (endpoint(), endpoint());
    let listener = there.listen().unwrap();
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.abandon(listener.accept_async()));
    }
    assert_eq!(tasks.held(), 0);
    // A port of the test that never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for _ in 0..10 {
        assert!(tasks.abandon(here.connect_async(address)));
        assert!(tasks.abandon(here.connect_with_async(address, ConnectOptions::stream().rendezvous())));
        assert!(tasks.abandon(here.connect_with_async(address, ConnectOptions::messages())));
    }
    assert_eq!(tasks.held(), 0);
}

/// A name whose resolution ends when the test permits it.
struct SlowName(Mutex<Receiver<()>>);

impl ToSocketAddrs for SlowName {
    type Iter = std::vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> std::io::Result<Self::Iter> {
        // The result does not matter: the test sent the signal, or it is over.
        let _ = self.0.lock().unwrap().recv();
        Ok(Vec::new().into_iter())
    }
}

#[test]
fn a_running_name_resolution_holds_no_task_that_abandoned_it() {
    let here = endpoint();
    let (lets_go, held) = mpsc::channel();
    let mut tasks = Tasks::default();
    assert!(tasks.abandon(here.connect_async(SlowName(Mutex::new(held)))));
    assert_eq!(tasks.held(), 0);
    drop(lets_go);
}

#[test]
fn a_wait_polled_by_several_tasks_holds_only_the_last_one() {
    let (here, there) = (endpoint(), endpoint());
    let (socket, peer) = message_sockets(&here, &there);
    let (first, second) = (Arc::new(Task), Arc::new(Task));
    let mut room = [0; 10];
    {
        let mut wait = pin!(socket.recv(&mut room));
        for (task, others) in [(&first, &second), (&second, &first)] {
            let waker = Waker::from(Arc::clone(task));
            let poll = wait.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(matches!(poll, Poll::Pending));
            drop(waker);
            assert_eq!((Arc::strong_count(task), Arc::strong_count(others)), (2, 1));
        }
    }
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    drop(peer);
}

/// Polls a wait that `make` makes a few times and abandons it, again and again, until one has a result.
fn impatiently<T>(mut make: impl AsyncFnMut() -> T) -> T {
    block_on(async {
        for turn in 0.. {
            let mut wait = pin!(make());
            for _ in 0..turn % 4 {
                let polled = std::future::poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
                if let Poll::Ready(result) = polled {
                    return result;
                }
                tokio::task::yield_now().await;
            }
        }
        unreachable!("it goes on until there is a result")
    })
}

#[test]
fn abandoned_reads_lose_no_byte_and_abandoned_writes_take_none() {
    let (here, there) = (endpoint(), endpoint());
    let (mut near, far) = streams(&here, &there);
    let content: Vec<u8> = (0..2_000_000_u32).map(|number| (number % 251) as u8).collect();
    let sent = content.clone();
    let sending = std::thread::spawn(move || {
        let mut left = &sent[..];
        while !left.is_empty() {
            let taken = impatiently(async || near.write(left).await.unwrap());
            left = &left[taken..];
        }
        impatiently(async || near.finish().await.unwrap());
    });
    let (mut received, mut far) = (Vec::new(), far);
    loop {
        let read = impatiently(async || {
            let mut room = [0; 10_000];
            let len = far.read(&mut room).await.unwrap();
            room[..len].to_vec()
        });
        if read.is_empty() {
            break;
        }
        received.extend(read);
    }
    sending.join().unwrap();
    assert!(received == content);
}

#[test]
fn abandoned_calls_send_and_receive_each_message_once() {
    let (here, there) = (endpoint(), endpoint());
    let (near, far) = message_sockets(&here, &there);
    let options = farhaul::SendOptions::default().in_order();
    let sending = std::thread::spawn(move || {
        for number in 0..300_u32 {
            let message = [&number.to_ne_bytes()[..], &[7; 5_000]].concat();
            impatiently(async || near.send_with(&message, options).await.unwrap());
        }
        impatiently(async || near.finish().await.unwrap());
    });
    for number in 0..300_u32 {
        let begin = impatiently(async || {
            let mut room = vec![0; 10_000];
            far.recv(&mut room).await.unwrap().map(|_| [room[0], room[1], room[2], room[3]])
        });
        assert_eq!(begin, Some(number.to_ne_bytes()));
    }
    sending.join().unwrap();
}

#[test]
fn abandoned_accepts_lose_no_connection_and_abandoned_connects_leave_none() {
    let (here, there) = (endpoint(), endpoint());
    let listener = there.listen().unwrap();
    let address = there.local_addr();
    let calling = std::thread::spawn(move || {
        for number in 0..20_u8 {
            let stream = here.connect(address).unwrap();
            stream.send_all(&[number]).unwrap();
            stream.finish().unwrap();
        }
        let mut tasks = Tasks::default();
        for _ in 0..20 {
            tasks.abandon(here.connect_async(address));
        }
        here
    });
    for number in 0..20_u8 {
        let (stream, _) = impatiently(async || listener.accept_async().await.unwrap());
        let mut room = [0];
        assert_eq!((stream.as_blocking().recv(&mut room).unwrap(), room), (1, [number]));
    }
    let here = calling.join().unwrap();
    drop(here);
    farhaul::wait_idle();
}
