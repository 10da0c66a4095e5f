//! The Python package: its virtual environment, its wheel, its tests.
//!
//! ```text
//! python3 -m venv ─▶ pip install -r requirements-test.txt ─▶ ruff ─▶ maturin build ─▶ pip install WHEEL ─▶ pytest
//! ```
//!
//! Everything lies below the build folder. The environment is made again only if its requirements or its Python change.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail, ensure};

mod outcomes;

use crate::sections::{CheckStatus, shown, succeed};
use crate::suite::Report;
use crate::workspace::Workspace;

/// The folder of the package, from the root.
const PACKAGE: &str = "python";
const REQUIREMENTS: &str = "python/requirements-test.txt";
/// Programs that may be a Python.
const PYTHONS: &[&str] = &["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
/// Succeeds in a Python that can run the package and make environments, and prints its version and its place.
const SUITS: &str =
    "import sys, venv, ensurepip; assert sys.version_info >= (3, 11); print(sys.version, sys.executable)";
/// A name of what has been installed into an environment.
const STAMP: &str = "requirements-installed";
/// The tests wait for most of their time, so two processes run them, each whole files. Later arguments prevail.
const SHARED_OUT: [&str; 4] = ["-n", "2", "--dist", "loadfile"];
/// With this variable, nothing may be skipped.
const MUST_RUN: &str = "FARHAUL_TESTS_MUST_RUN";

/// The verb `python`: builds the wheel, installs it and runs its tests. Arguments go to pytest.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    match Preparation::begin(workspace).test(workspace, arguments, &mut Report::default())? {
        CheckStatus::Passed => Ok(()),
        CheckStatus::Skipped(why) => bail!("{why}"),
    }
}

/// An environment that is being made, on a thread of its own: most of the time goes by on the network.
#[derive(Debug)]
pub(crate) struct Preparation(JoinHandle<Result<Environment>>);

/// A virtual environment with everything that the tests import.
#[derive(Debug)]
struct Environment {
    folder: PathBuf,
}

impl Preparation {
    /// Begins to make the environment, unless there is one.
    pub(crate) fn begin(workspace: &Workspace) -> Self {
        let folder = workspace.target.join("python/venv");
        let requirements = workspace.root.join(REQUIREMENTS);
        Self(thread::spawn(move || Environment::make(folder, &requirements)))
    }

    /// Waits for the environment, checks style and format, builds the wheel, and runs the tests with these arguments of pytest. Reports each of them.
    ///
    /// # Errors
    /// The style is wrong, the wheel cannot be built, or a test failed.
    pub(crate) fn test(self, workspace: &Workspace, arguments: &[String], report: &mut Report) -> Result<CheckStatus> {
        let made = self.0.join().map_err(|_| anyhow!("the thread that makes the environment ended"))?;
        let environment = match made {
            Ok(environment) => environment,
            Err(why) if std::env::var_os(MUST_RUN).is_none() => return Ok(CheckStatus::Skipped(format!("{why:#}"))),
            Err(why) => return Err(why),
        };
        environment.lint(workspace)?;
        environment.install(&environment.wheel(workspace)?)?;
        let mut pytest = environment.python(["-m", "pytest", "-q"]);
        pytest.args(SHARED_OUT);
        pytest.args(arguments).current_dir(workspace.root.join(PACKAGE));
        // For tests that need the program, such as copies over SSH.
        pytest.env("FARHAUL_PROGRAM", workspace.target.join("debug/farhaul"));
        let file = workspace.target.join("python/outcomes.ndjson");
        // Those of the last time.
        let _ = fs::remove_file(&file);
        let tested = succeed(pytest.env(outcomes::VARIABLE, &file));
        outcomes::read(&file)?.into_iter().for_each(|finished| report.add(finished));
        tested
    }
}

impl Environment {
    fn make(folder: PathBuf, requirements: &Path) -> Result<Self> {
        let python = PYTHONS.iter().find_map(|name| {
            let output = Command::new(name).args(["-c", SUITS]).output().ok()?;
            output.status.success().then_some((*name, output.stdout))
        });
        let (name, version) =
            python.context("no Python from 3.11 on with venv (Debian: apt-get install python3-venv)")?;
        let read = fs::read_to_string(requirements).with_context(|| requirements.display().to_string())?;
        let stamp = format!("{}\n{read}", String::from_utf8_lossy(&version));
        let environment = Self { folder };
        if fs::read_to_string(environment.folder.join(STAMP)).is_ok_and(|installed| installed == stamp) {
            return Ok(environment);
        }
        quietly(Command::new(name).args(["-m", "venv", "--clear"]).arg(&environment.folder))?;
        let mut pip = environment.python(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        quietly(pip.arg(requirements))?;
        fs::write(environment.folder.join(STAMP), stamp)?;
        Ok(environment)
    }

    /// Checks the style and the format of the sources.
    fn lint(&self, workspace: &Workspace) -> Result<()> {
        for words in [&["check", "--quiet"][..], &["format", "--check", "--quiet"]] {
            let mut ruff = self.python(["-m", "ruff"]);
            succeed(ruff.args(words).arg("--no-cache").current_dir(workspace.root.join(PACKAGE)))?;
        }
        Ok(())
    }

    /// Builds the wheel with the profile of the other tests.
    fn wheel(&self, workspace: &Workspace) -> Result<PathBuf> {
        let folder = workspace.target.join("python/wheels");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        let mut maturin = workspace.command(&self.program("maturin").to_string_lossy());
        maturin.envs(workspace.cargo().get_envs().filter_map(|(name, value)| Some((name, value?))));
        maturin.args(["build", "--quiet", "--profile", "dev", "--compatibility", "linux", "--manifest-path"]);
        maturin.arg(workspace.root.join(PACKAGE).join("Cargo.toml")).arg("--out").arg(&folder);
        maturin.arg("--interpreter").arg(self.program("python"));
        succeed(&mut maturin)?;
        let mut wheels = fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path()));
        wheels.next().context("maturin left no wheel")?.map_err(Into::into)
    }

    fn install(&self, wheel: &Path) -> Result<CheckStatus> {
        let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"];
        succeed(self.python(words).arg("--force-reinstall").arg(wheel))
    }

    /// The Python of the environment. The folder where it starts is not searched for packages, because the sources of this one may
    /// lie there.
    fn python(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(self.program("python"));
        command.args(arguments).env("PYTHONSAFEPATH", "1");
        command
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }
}

/// Runs a command whose output counts only if it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let Output { status, stderr, .. } = command.output().with_context(|| shown.clone())?;
    let last = String::from_utf8_lossy(&stderr).lines().last().unwrap_or_default().to_owned();
    ensure!(status.success(), "`{shown}` failed: {last}");
    Ok(())
}
