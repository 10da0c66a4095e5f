fn main() -> std::process::ExitCode {
    farhaul_cli::Program::new().controller(farhaul_own_controller::aimd()).run()
}
