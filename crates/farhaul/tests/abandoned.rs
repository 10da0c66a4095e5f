//! Waits of tasks that are given up: nothing of the task stays behind.
#![cfg(feature = "tokio")]
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use farhaul::{AsyncMessageSocket, AsyncStream, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Waits that are given up one after the other.
const TIMES: usize = 1_000;

/// A task that may be dropped once nobody holds it.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// The tasks that waited in vain.
#[derive(Default)]
struct Tasks(Vec<Arc<Task>>);

impl Tasks {
    /// A new task polls `wait` once and gives it up; says whether it had to wait.
    fn give_up<F: Future>(&mut self, wait: F) -> bool {
        let task = Arc::new(Task);
        let waker = Waker::from(Arc::clone(&task));
        self.0.push(task);
        pin!(wait).poll(&mut Context::from_waker(&waker)).is_pending()
    }

    /// How many of them somebody still holds.
    fn held(&self) -> usize {
        self.0.iter().filter(|task| Arc::strong_count(task) > 1).count()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// An endpoint whose buffers one message fills.
fn endpoint() -> Endpoint {
    Endpoint::builder().send_buffer(100_000).recv_buffer(100_000).bind("127.0.0.1:0".parse().unwrap()).unwrap()
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
        let (socket, accepted) = tokio::join!(here.connect_for_messages_async(there.local_addr()), async {
            listener.accept_async().await.unwrap().0
        });
        (socket.unwrap(), accepted)
    })
}

#[test]
fn of_all_reads_that_were_given_up_a_stream_holds_the_last_task_and_none_once_it_is_gone() {
    let (here, there) = (endpoint(), endpoint());
    let (mut stream, peer) = streams(&here, &there);
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.give_up(stream.read(&mut [0; 10])));
        assert!(tasks.give_up(stream.clone().read(&mut [0; 10])));
    }
    assert_eq!(tasks.held(), 1, "a read of tokio's does not tell that it was given up");
    drop(stream);
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn of_all_writes_that_were_given_up_a_stream_holds_the_last_task_and_none_once_it_is_gone() {
    let (here, there) = (endpoint(), endpoint());
    let (mut stream, peer) = streams(&here, &there);
    let mut tasks = Tasks::default();
    let mut waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.give_up(stream.write(&[0; 10_000])));
    }
    assert!(tasks.held() <= 1, "{} tasks", tasks.held());
    waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.give_up(stream.clone().write(&[0; 10_000])));
    }
    assert!(tasks.held() <= 1, "{} tasks", tasks.held());
    assert!(tasks.give_up(stream.shutdown()));
    drop(stream);
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn messages_that_were_waited_for_in_vain_leave_nothing() {
    let (here, there) = (endpoint(), endpoint());
    let (socket, peer) = message_sockets(&here, &there);
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.give_up(socket.recv(&mut [0; 10])));
    }
    assert_eq!(tasks.held(), 0);
    let mut waited = 0;
    while waited < TIMES {
        waited += usize::from(tasks.give_up(socket.send(&[0; 10_000])));
    }
    assert_eq!(tasks.held(), 0);
    assert!(tasks.give_up(socket.finish()));
    assert_eq!(tasks.held(), 0);
    drop(peer);
}

#[test]
fn connections_that_were_waited_for_in_vain_leave_nothing() {
    let (here, there) = (endpoint(), endpoint());
    let listener = there.listen().unwrap();
    let mut tasks = Tasks::default();
    for _ in 0..TIMES {
        assert!(tasks.give_up(listener.accept_async()));
    }
    assert_eq!(tasks.held(), 0);
    // Nobody answers at this port of the test's own.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for _ in 0..10 {
        assert!(tasks.give_up(here.connect_async(address)));
        assert!(tasks.give_up(here.rendezvous_async(address)));
        assert!(tasks.give_up(here.connect_for_messages_async(address)));
    }
    assert_eq!(tasks.held(), 0);
}

/// A name whose search ends when the test lets it.
struct SlowName(Mutex<Receiver<()>>);

impl ToSocketAddrs for SlowName {
    type Iter = std::vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> std::io::Result<Self::Iter> {
        // Whether the test lets go or is over comes to the same.
        let _ = self.0.lock().unwrap().recv();
        Ok(Vec::new().into_iter())
    }
}

#[test]
fn the_search_for_a_name_holds_no_task_that_gave_it_up() {
    let here = endpoint();
    let (lets_go, held) = mpsc::channel();
    let mut tasks = Tasks::default();
    assert!(tasks.give_up(here.connect_async(SlowName(Mutex::new(held)))));
    assert_eq!(tasks.held(), 0);
    drop(lets_go);
}

#[test]
fn a_wait_that_is_polled_by_several_tasks_holds_the_last_one() {
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
