//! A file session over a stream, from disk to disk, as in a copy.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use farhaul::cc::Spec;
use farhaul::{Listener, Stream};
use farhaul_disk::{DiskSource, DiskStore};
use farhaul_session::{Acceptor, FileReceiver, FileSender, Push, ReceiveLimits};
use farhaul_transfer::{Code, CopyJob, Environment, Location, RemoteFiles, RemoteHost, Settings, Ssh};

/// A directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("farhaul-copy-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn send(stream: &Stream, source: &mut DiskSource) -> FileSender {
    let mut session = FileSender::push(Push::default());
    let mut room = vec![0; 64 << 10];
    loop {
        while let len @ 1.. = session.poll_write(source).len() {
            stream.send_all(session.poll_write(source)).unwrap();
            session.handle_written(len);
        }
        while session.poll_event().is_some() {}
        if session.is_over() {
            // The connecting side closes.
            stream.finish().unwrap();
            return session;
        }
        match stream.recv(&mut room).unwrap() {
            0 => session.handle_end().unwrap(),
            len => assert_eq!(session.handle_received(&room[..len]).unwrap(), len),
        }
    }
}

fn receive(stream: &Stream, store: &mut DiskStore) -> FileReceiver {
    let (mut acceptor, mut room) = (Acceptor::new(), vec![0; 256 << 10]);
    let (mut filled, mut used) = (0, 0);
    let open = loop {
        if used == filled {
            (filled, used) = (stream.recv(&mut room).unwrap(), 0);
        }
        let (taken, open) = acceptor.handle_received(&room[used..filled]).unwrap();
        used += taken;
        if let Some(open) = open {
            break open;
        }
    };
    let mut session = FileReceiver::answer(&open, ReceiveLimits::default());
    loop {
        while used < filled && !session.is_over() {
            used += session.handle_received(store, &room[used..filled]).unwrap();
            while session.poll_event().is_some() {}
            stream.send_all(session.poll_write()).unwrap();
            session.handle_written(session.poll_write().len());
        }
        if session.is_over() {
            assert_eq!(stream.recv(&mut room).unwrap(), 0);
            return session;
        }
        (filled, used) = (stream.recv(&mut room).unwrap(), 0);
    }
}

fn tree(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for path in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        let content = path.is_file().then(|| fs::read(&path).unwrap());
        if content.is_none() {
            all.extend(
                tree(&path)
                    .into_iter()
                    .map(|(below, content)| (Path::new(path.file_name().unwrap()).join(below), content)),
            );
        }
        all.push((path.file_name().unwrap().into(), content));
    }
    all.sort();
    all
}

#[test]
fn a_tree_is_copied_and_confirmed() {
    let (from, to) = (Scratch::new("from"), Scratch::new("to"));
    for (name, len) in [("tree/large", 9_000_000), ("tree/a/small", 10), ("tree/a/empty", 0), ("tree/b/c/d", 70_000)] {
        let path = from.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, (0..len).map(|number: u32| (number % 249) as u8).collect::<Vec<_>>()).unwrap();
    }
    let listener = Listener::plain("127.0.0.1:0").unwrap();
    let address = listener.local_addr();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            receive(&stream, &mut DiskStore::at(&to.0, true).unwrap()).totals()
        });
        let mut source = DiskSource::new(&[from.0.join("tree")], true).unwrap();
        let sender = send(&Stream::connect_plain(address).unwrap(), &mut source);
        assert_eq!(sender.error(), None);
        assert_eq!(sender.totals(), receiver.join().unwrap());
    });
    assert!(tree(&from.0) == tree(&to.0));
}

#[test]
fn a_controller_of_this_program_alone_reaches_no_sender_on_another_host() {
    let check = |places: [&str; 2], controller: Spec, background: bool| {
        let places: Vec<Location> = places.iter().map(|place| place.parse().unwrap()).collect();
        let settings = Settings { controller: Some(controller), background, ..Settings::default() };
        CopyJob::new(&places, false).unwrap().with_settings(settings).check()
    };
    let own = || Spec::made("own", |seed| Spec::default().build(seed));
    for places in [["far.example:a", "here"], ["far.example:a", "other.example:"]] {
        let error = check(places, own(), false).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        assert!(error.to_string().contains("'own' is code of this program"), "{error}");
        // The remote program has these.
        check(places, "cubic".parse().unwrap(), false).unwrap();
        check(places, own(), true).unwrap();
    }
    // This side sends, or the sender is a server with settings of its own.
    for places in [["here", "far.example:"], ["udt://far.example:9000/a", "here"]] {
        check(places, own(), false).unwrap();
    }
    let host = RemoteHost::Ssh("far.example".to_owned());
    let settings = Settings { controller: Some(own()), ..Settings::default() };
    let refused = RemoteFiles::connecting_later(host, settings, Ssh::default(), &Environment::default());
    assert_eq!(refused.unwrap_err().code, Code::Usage);
}
