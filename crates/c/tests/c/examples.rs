//! The examples and the contract of the header, compiled by gcc without a warning and run under the address and undefined-behaviour
//! sanitizers, against the shared library as it is shipped.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::SystemTime;

use farhaul::Endpoint;
use farhaul_transfer::internal::serve::DirectoryServer;
use farhaul_transfer::{Environment, Settings};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
/// Seconds, far more than any of them takes.
const LIMIT: &str = "60";
const COMPILER: &[&str] = &["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1", "-pthread"];
const SANITIZERS: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The shared library and the programs of this run, which are removed with it.
struct Built(PathBuf);

impl Drop for Built {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Built {
    /// `None` without gcc or its sanitizers.
    fn new() -> Option<Self> {
        let built = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{}", std::process::id())));
        fs::create_dir_all(&built.0).unwrap();
        fs::write(built.0.join("empty.c"), "int main(void) { return 0; }\n").unwrap();
        let tried = Command::new("gcc").args(SANITIZERS).arg("empty.c").current_dir(&built.0).output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            let name = thread::current().name().unwrap_or("test").to_owned();
            let _ = writeln!(io::stderr(), "SKIPPED {name}: no gcc with sanitizers");
            return None;
        }
        let linked = Command::new(format!("{FOLDER}/link.sh")).arg(static_library()).arg(&built.0).output().unwrap();
        assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
        Some(built)
    }

    /// Compiles a program of one file.
    #[track_caller]
    fn compile(&self, source: &str) {
        let folder = self.0.display();
        let run = Command::new("gcc")
            .args(COMPILER)
            .args(SANITIZERS)
            .arg(format!("-I{FOLDER}/include"))
            .arg(format!("{FOLDER}/{source}"))
            .args([format!("-L{folder}"), "-lfarhaul".into(), format!("-Wl,-rpath,{folder}"), "-o".into()])
            .arg(self.program(source))
            .output()
            .unwrap();
        assert!(run.status.success(), "{source}: {}", String::from_utf8_lossy(&run.stderr));
    }

    fn program(&self, source: &str) -> PathBuf {
        self.0.join(Path::new(source).file_stem().unwrap())
    }

    fn run(&self, source: &str, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(self.program(source)).args(words);
        command.env("ASAN_OPTIONS", "detect_leaks=1").env("UBSAN_OPTIONS", "print_stacktrace=1");
        command.env_remove("RATE").env_remove("LIMIT").envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// It ends well, and prints these words.
    #[track_caller]
    fn prints(&self, source: &str, words: &[&str], expected: &[&str]) {
        let run = self.run(source, words, &[]);
        let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{source}: {}\n{stdout}{stderr}", run.status);
        assert!(expected.iter().all(|line| stdout.contains(line)), "{source}: {stdout}");
    }
}

/// The newest static library of the crate beside this program. Cargo has built it for this program, or has found it current.
fn static_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let files = fs::read_dir(program.parent().unwrap()).unwrap().map(|file| file.unwrap());
    let libraries = files.filter(|file| {
        let name = file.file_name().into_string().unwrap_or_default();
        name.starts_with("libfarhaul_c-") && name.ends_with(".a")
    });
    let made = |file: &fs::DirEntry| file.metadata().and_then(|its| its.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    libraries.max_by_key(made).unwrap().path()
}

/// A server of a directory in this process, and the directory of a client.
struct Served {
    folder: PathBuf,
    environment: Environment,
    address: String,
    thread: Option<thread::JoinHandle<()>>,
}

impl Served {
    fn new(built: &Built) -> Self {
        let folder = built.0.join("served");
        fs::create_dir_all(folder.join("root")).unwrap();
        fs::create_dir_all(folder.join("tree/below")).unwrap();
        fs::write(folder.join("tree/one"), vec![1; 3_000_000]).unwrap();
        fs::write(folder.join("tree/below/two"), b"two").unwrap();
        let environment = Environment::default();
        let server = DirectoryServer::of(&folder.join("root"), None, false).unwrap();
        let endpoint = Endpoint::plain("127.0.0.1:0").unwrap();
        let address = format!("udt://{}", endpoint.local_addr());
        environment.cancellation.cancels(endpoint.canceller());
        let listener = endpoint.listen().unwrap();
        let its = environment.clone();
        let mut settings = Settings::default();
        settings.security.plain = true;
        let thread = Some(thread::spawn(move || drop(server.run(&its, &settings, listener, |_| ()))));
        Self { folder, environment, address, thread }
    }

    fn at(&self, path: &str) -> String {
        self.folder.join(path).display().to_string()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.environment.cancellation.cancel();
        let _ = self.thread.take().unwrap().join();
    }
}

/// One test, because each test is a process of its own, and the library is linked once.
#[test]
fn the_examples_and_the_contract_hold_under_sanitizers() {
    let Some(built) = Built::new() else { return };
    let sources = ["hello", "epoll", "messages", "copy", "files"].map(|name| format!("examples/{name}.c"));
    let sources: Vec<&str> = sources.iter().map(String::as_str).chain(["tests/c/contract.c"]).collect();
    thread::scope(|scope| sources.iter().for_each(|source| drop(scope.spawn(|| built.compile(source)))));
    built.prints("hello.c", &[], &["100000 bytes from ssh-ed25519", "the answer: thanks", "100000 bytes acknowledged"]);
    built.prints("epoll.c", &[], &["4194304 bytes sent, 4194304 received"]);
    built.prints("messages.c", &[], &["over the hills\nand far away"]);
    built.prints("contract.c", &[], &["the contract holds"]);
    let served = Served::new(&built);
    copies(&built, &served);
    let lines = ["27 bytes, from the 9th on: hills", "second.txt", "third.txt", "2 entries, 3 removed"];
    built.prints("files.c", &["--plain", &served.address], &lines);
    exports(&built);
}

/// A copy arrives, with its events, and one that is cancelled in its middle tells what it did.
fn copies(built: &Built, served: &Served) {
    let (tree, to) = (served.at("tree"), format!("{}/", served.address));
    // At this rate the larger file takes 12 s, so the copy still runs when the smaller one has arrived, however busy the host is.
    let slow = [("RATE", "2000000"), ("LIMIT", "1")];
    let cancelled = built.run("copy.c", &["--plain", &tree, &to], &slow);
    let stderr = String::from_utf8_lossy(&cancelled.stderr);
    assert_eq!(cancelled.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("below/two: 3 bytes, verified") && stderr.contains("it was cancelled"), "{stderr}");
    built.prints("copy.c", &["--plain", &tree, &to], &["verified"]);
    assert_eq!(fs::read(served.at("root/tree/one")).unwrap(), vec![1; 3_000_000]);
    let back = served.at("back/");
    built.prints(
        "copy.c",
        &["--plain", &format!("{}/tree", served.address), &back],
        &["2 files, 3000003 bytes, verified"],
    );
    assert_eq!(fs::read(served.at("back/tree/below/two")).unwrap(), b"two");
}

/// The library has its name and its version, and exports nothing but its own functions.
fn exports(built: &Built) {
    let run =
        Command::new("readelf").args(["-W", "-d", "--dyn-syms"]).arg(built.0.join("libfarhaul.so.0")).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains("soname: [libfarhaul.so.0]") && text.contains("NODELETE"), "{text}");
    let is_defined = |line: &&str| line.contains(" GLOBAL ") && !line.contains(" UND ");
    let names: Vec<&str> = text.lines().filter(is_defined).filter_map(|line| line.split_whitespace().last()).collect();
    let is_own = |name: &&&str| name.starts_with("farhaul_") && name.ends_with("@@FARHAUL_0");
    assert!(names.len() > 60 && names.iter().filter(is_own).count() + 1 == names.len(), "and the version: {names:?}");
}
