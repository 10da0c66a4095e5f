//! The library under test, programs of libudt, and the reason for skipping a test.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;

/// Exit code of scripts that miss g++ or libudt.
const MISSING: i32 = 77;
/// Names libudt-peer where it is already built.
const PEER_VARIABLE: &str = "FARHAUL_LIBUDT_PEER";
/// Seconds after which a program ends that ends by itself.
pub(crate) const LONGEST: &str = "60";
/// With it, a test that would be skipped fails.
const MUST_RUN: &str = "FARHAUL_TESTS_MUST_RUN";

/// A library that programs of libudt can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Farhaul,
    /// Debian's.
    Reference,
}

/// Where programs find the headers of libudt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Headers {
    Farhaul,
    Reference,
}

impl Library {
    /// A command that runs `program` on this library. `None` after a line with the reason why there is none.
    pub(crate) fn command(self, program: &Path) -> Option<Command> {
        let mut command = Command::new(program);
        self.choose(&mut command)?;
        Some(command)
    }

    /// The same for a program that ends by itself, within so many seconds. The reference library may hang where ours does not.
    pub(crate) fn command_for(self, program: &Path, seconds: &str) -> Option<Command> {
        let mut command = Command::new("timeout");
        command.arg(seconds).arg(program);
        self.choose(&mut command)?;
        Some(command)
    }

    fn choose(self, command: &mut Command) -> Option<()> {
        match self {
            Self::Farhaul => command.env("LD_LIBRARY_PATH", folder()?),
            Self::Reference => command.env_remove("LD_LIBRARY_PATH"),
        };
        Some(())
    }

    /// Runs `program` to its end, which must be a success, and returns its output.
    pub(crate) fn output(self, program: &Path, arguments: &[&str]) -> Option<String> {
        let mut command = self.command_for(program, LONGEST)?;
        let Output { status, stdout, stderr } = command.args(arguments).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{self:?}: {program:?} {arguments:?}: {status}\n{stdout}\n{stderr}");
        Some(stdout.into_owned())
    }
}

/// A process that is killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which does not matter.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder of our `libudt.so.0`, linked once.
pub(crate) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    given(FOLDER.get_or_init(|| {
        let folder = scratch().join("libudt");
        let link = source("link.sh");
        script(Command::new(link).arg(static_library()).arg(&folder)).map(|_| folder)
    }))
}

/// The reference peer of `interop/`.
pub(crate) fn peer() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    given(PROGRAM.get_or_init(|| match std::env::var_os(PEER_VARIABLE) {
        Some(program) => Ok(program.into()),
        None => {
            script(Command::new(source("../../interop/build.sh")).arg(scratch().join("interop"))).map(PathBuf::from)
        }
    }))
}

/// Compiles a program of `tests/programs`. `None` after a line with the reason why it cannot be compiled.
pub(crate) fn compile(name: &str, headers: Headers) -> Option<PathBuf> {
    // It says whether g++ and libudt are here.
    peer()?;
    let program = scratch().join(format!("{name}-{headers:?}"));
    compile_to(&source(&format!("tests/programs/{name}.cpp")), &program, headers)?;
    Some(program)
}

/// Compiles a file to a program, unless that is newer.
pub(crate) fn compile_to(file: &Path, program: &Path, headers: Headers) -> Option<()> {
    let when = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let ours = [file.to_owned(), source("tests/programs/loopback.h")];
    let mut newest = ours.into_iter().chain((headers == Headers::Farhaul).then(|| source("include/udt/ccc.h")));
    if newest.all(|file| when(&file) < when(program)) {
        return Some(());
    }
    // Another test of this process may compile it, too.
    let thread = std::thread::current().id();
    let unfinished = program.with_extension(format!("{}-{thread:?}", std::process::id()));
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or("g++".into()));
    command.args(["-std=c++17", "-O1", "-w", "-o"]).arg(&unfinished);
    match headers {
        // Programs include <udt/udt.h> or <udt.h>.
        Headers::Farhaul => command.arg("-I").arg(source("include")).arg("-I").arg(source("include/udt")),
        Headers::Reference => command.arg("-I/usr/include/udt"),
    };
    command.arg(file);
    if headers == Headers::Farhaul {
        command.arg("-L").arg(folder()?);
    }
    let output = command.args(["-ludt", "-lpthread"]).output().unwrap();
    assert!(output.status.success(), "{file:?}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(unfinished, program).unwrap();
    Some(())
}

/// Where tests may write. Tests of other processes write there at the same time.
pub(crate) fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libudt");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A path inside this crate.
pub(crate) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The static library of this crate, which cargo built beside this program.
fn static_library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(program.parent().unwrap()).unwrap().flatten();
    let ours = files.filter(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libfarhaul_libudt-") && name.ends_with(".a")
    });
    let newest = ours.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok());
    newest.expect("cargo builds the static library for the tests of its crate").path()
}

/// Runs a script. Returns its last line, or the reason why it cannot run here.
fn script(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let last = said.lines().last().unwrap_or_default();
    match output.status.code() {
        Some(0) => Ok(last.to_owned()),
        Some(MISSING) => Err(last.trim_start_matches("skip: ").to_owned()),
        _ => panic!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn given(result: &'static Result<PathBuf, String>) -> Option<&'static Path> {
    match result {
        Ok(path) => Some(path),
        Err(reason) => skip(reason),
    }
}

/// Reports on the process's standard error that the test proves nothing. The test harness does not capture it.
pub(crate) fn skip<R>(reason: &str) -> Option<R> {
    assert!(std::env::var_os(MUST_RUN).is_none(), "{MUST_RUN} is set, but: {reason}");
    let test = thread::current();
    // A closed standard error cannot be reported.
    let _ = writeln!(io::stderr(), "SKIPPED {}: {reason}", test.name().unwrap_or("test"));
    None
}
