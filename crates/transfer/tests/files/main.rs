//! The files of a server in this process, by requests.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod changes;
mod connections;
mod held;
mod reads;
mod tasks;
mod trees;

use std::fs;
use std::path::PathBuf;
use std::thread;

use farhaul::Endpoint;
use farhaul_transfer::internal::serve::DirectoryServer;
use farhaul_transfer::{Environment, RemoteFiles, RemoteHost, Settings, Ssh};

/// A server of a directory of its own, which both end with the test.
struct Served {
    root: PathBuf,
    environment: Environment,
    address: String,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn new(name: &str, with: impl FnOnce(DirectoryServer) -> DirectoryServer) -> Self {
        let root = std::env::temp_dir().join(format!("farhaul-served-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (environment, settings) = (Environment::default(), settings());
        let server = with(DirectoryServer::of(&root, None, false).unwrap());
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        let address = endpoint.local_addr().to_string();
        environment.cancellation.cancels(endpoint.canceller());
        let listener = endpoint.listen().unwrap();
        let its = environment.clone();
        let thread = thread::spawn(move || drop(server.run(&its, &settings, listener, |_| ())));
        Self { root, environment, address, thread: Some(thread) }
    }

    fn files(&self) -> RemoteFiles {
        let host: RemoteHost = format!("udt://{}", self.address).parse().unwrap();
        RemoteFiles::connect(host, settings(), Ssh::default(), &Environment::default()).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.root.join(name), bytes).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.environment.cancellation.cancel();
        let _ = self.thread.take().unwrap().join();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.security.plain = true;
    settings
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 251 + at % 251) as u8).collect()
}
