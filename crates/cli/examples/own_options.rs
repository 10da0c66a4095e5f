//! A controller with an option.

use farhaul::cc::options::{OptionDoc, OptionForm};
use farhaul::cc::{Registration, Spec};

fn main() -> std::process::ExitCode {
    let form = OptionForm::Optional { default: "reno" };
    let follow = Registration::new("follow", "another law under another name", |settings, seed| {
        let law: Option<Spec> = settings.optional("law", str::parse)?;
        Ok(law.unwrap_or("reno".parse()?).build(seed))
    })
    .option(OptionDoc { name: "law", meaning: "the other law", form });
    farhaul_cli::Program::new().controller(follow).run()
}
