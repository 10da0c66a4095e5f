//! `controllers`: the list of congestion controllers.

use std::fmt::Write as _;

use clap::Args;
use farhaul_cc::options::OptionForm;
use farhaul_cc::registry::{Entry, controllers};
use serde_json::{Value, json};

use crate::exit::Fault;
use crate::output::print;

/// List the congestion controllers with their options and sources
#[derive(Args, Debug)]
pub(crate) struct ControllersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ControllersArgs) -> Result<(), Fault> {
    if args.json {
        let all: Vec<Value> = controllers().iter().map(record).collect();
        print(&format!("{}\n", Value::from(all)));
    } else {
        let mut text = String::new();
        controllers().iter().for_each(|entry| describe(&mut text, entry));
        text.push_str("Use: --controller NAME or --controller NAME:OPTION=VALUE,…; the first is the default.\n");
        print(&text);
    }
    Ok(())
}

fn describe(text: &mut String, entry: &Entry) {
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("writing to a String cannot fail");
    line(format_args!("{:<8} {}", entry.name, entry.summary));
    if entry.source != "none" {
        line(format_args!("{:<8} source: {}", "", entry.source));
    }
    for option in entry.options {
        line(format_args!("{:<8} {}:{}  {}", "", entry.name, option.written(), option.meaning));
    }
    line(format_args!(""));
}

fn record(entry: &Entry) -> Value {
    let options: Vec<Value> = entry
        .options
        .iter()
        .map(|option| {
            let kind = match option.form {
                OptionForm::Flag => "flag",
                OptionForm::Required { .. } => "required",
                OptionForm::Optional { .. } => "optional",
            };
            json!({ "name": option.name, "meaning": option.meaning, "kind": kind, "default": option.form.default_value() })
        })
        .collect();
    let source: Vec<&str> = entry.source.split(", ").filter(|key| *key != "none").collect();
    json!({ "name": entry.name, "summary": entry.summary, "source": source, "options": options })
}
